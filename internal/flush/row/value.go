package row

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Kind is the type of a value or of a column, as far as a flush distinguishes types.
type Kind uint8

// These are the kinds. A column whose database type has no kind here is a KindOther. Its values are written as texts, and the database
// checks them.
const (
	KindNull Kind = iota
	KindInteger
	KindFloat
	KindNumeric
	KindText
	KindBytes
	KindBoolean
	KindTimestamp
	KindDate
	KindJSON
	KindUUID
	KindOther
	kindAbsent // see Absent
)

// String returns the name of the kind in a configuration and in messages.
func (k Kind) String() string {
	switch k {
	case KindNull:
		return "null"
	case KindInteger:
		return "integer"
	case KindFloat:
		return "float"
	case KindNumeric:
		return "numeric"
	case KindText:
		return "text"
	case KindBytes:
		return "bytes"
	case KindBoolean:
		return "boolean"
	case KindTimestamp:
		return "timestamp"
	case KindDate:
		return "date"
	case KindJSON:
		return "json"
	case KindUUID:
		return "uuid"
	default:
		return "other"
	}
}

// KindByName returns the kind with this name. It returns false if a configuration cannot name such a kind.
func KindByName(name string) (Kind, bool) {
	for k := KindInteger; k < KindOther; k++ {
		if k.String() == name {
			return k, true
		}
	}
	return KindNull, false
}

// KindNames lists the names of the kinds.
func KindNames() []string {
	var names []string
	for k := KindInteger; k < KindOther; k++ {
		names = append(names, k.String())
	}
	return names
}

// Value is the value of one column of one row, converted to the column's kind. It is a small struct and not an interface, so that a page of
// rows needs few allocations. The zero Value is SQL NULL.
type Value struct {
	kind Kind
	num  uint64 // integer, float bits, boolean, microseconds or days since 1970
	str  string // text, bytes, numeric digits, JSON, UUID
}

// Kind returns the kind of the value. It returns KindNull for SQL NULL.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether the value is SQL NULL.
func (v Value) IsNull() bool { return v.kind == KindNull }

// Absent returns the value of a column that is not to be written.
func Absent() Value { return Value{kind: kindAbsent} }

// IsAbsent reports whether the column is not to be written.
func (v Value) IsAbsent() bool { return v.kind == kindAbsent }

// Integer returns a KindInteger value.
func Integer(n int64) Value { return Value{kind: KindInteger, num: uint64(n)} }

// Float returns a KindFloat value.
func Float(f float64) Value { return Value{kind: KindFloat, num: math.Float64bits(f)} }

// Boolean returns a KindBoolean value.
func Boolean(b bool) Value {
	v := Value{kind: KindBoolean}
	if b {
		v.num = 1
	}
	return v
}

// Timestamp returns a KindTimestamp value with microseconds, in UTC.
func Timestamp(t time.Time) Value {
	return Value{kind: KindTimestamp, num: uint64(t.UnixMicro())}
}

// Date returns a KindDate value: the calendar day of t in t's own location.
func Date(t time.Time) Value {
	y, m, d := t.Date()
	days := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
	return Value{kind: KindDate, num: uint64(days)}
}

// String returns a value of any kind that is stored as text: KindText, KindBytes, KindNumeric (plain decimal digits), KindJSON, KindUUID
// (canonical form) and KindOther.
func String(k Kind, s string) Value { return Value{kind: k, str: s} }

// Int returns the integer of a KindInteger value.
func (v Value) Int() int64 { return int64(v.num) }

// Float returns the number of a KindFloat value.
func (v Value) Float() float64 { return math.Float64frombits(v.num) }

// Bool returns the bool of a KindBoolean value.
func (v Value) Bool() bool { return v.num == 1 }

// Time returns the time of a KindTimestamp value, or the UTC midnight of a KindDate value.
func (v Value) Time() time.Time {
	if v.kind == KindDate {
		return time.Unix(int64(v.num)*86400, 0).UTC()
	}
	return time.UnixMicro(int64(v.num)).UTC()
}

// Text returns the text of a value that String made.
func (v Value) Text() string { return v.str }

// Show returns the value as text, and false for NULL.
func (v Value) Show() (string, bool) {
	switch v.kind {
	case KindNull:
		return "", false
	case kindAbsent:
		return "(as it is)", true
	case KindInteger:
		return strconv.FormatInt(v.Int(), 10), true
	case KindFloat:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64), true
	case KindBoolean:
		return strconv.FormatBool(v.Bool()), true
	case KindTimestamp:
		return v.Time().Format(time.RFC3339Nano), true
	case KindDate:
		return v.Time().Format(time.DateOnly), true
	case KindBytes:
		return fmt.Sprintf("%q", v.str), true
	default:
		return v.str, true
	}
}
