package row

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"
)

// Compare orders two values of one column. Two keys are the same key if Compare returns 0 for their values.
func Compare(a, b Value) int {
	if a.kind != b.kind {
		// Only the values of an unsigned integer column can have two kinds. A value that is too large for a signed integer is stored as
		// decimal digits, and the kind of these digits is the greater one.
		return cmp.Compare(a.kind, b.kind)
	}
	switch a.kind {
	case KindInteger, KindTimestamp, KindDate, KindBoolean:
		return cmp.Compare(int64(a.num), int64(b.num))
	case KindFloat:
		return cmp.Compare(a.Float(), b.Float())
	case KindNumeric:
		return compareDecimal(a.str, b.str)
	default:
		return strings.Compare(a.str, b.str)
	}
}

// Prefix returns a number of 64 bits for the value of a column of this kind. The numbers of a column's values have the same order as the
// values. With these numbers, most comparisons of a sort need to read neither the rows nor their texts. If two of the numbers are equal,
// the values may still differ.
func (v Value) Prefix(column Kind) uint64 {
	switch v.kind {
	case KindInteger, KindTimestamp, KindDate:
		return v.num ^ 1<<63
	case KindNumeric:
		if column == KindInteger {
			return math.MaxUint64 // an unsigned integer above all signed ones
		}
	case KindText, KindUUID, KindOther, KindBytes, KindJSON:
		var first [8]byte
		copy(first[:], v.str)
		return binary.BigEndian.Uint64(first[:])
	}
	return 0
}

// Add adds two numbers of one kind. The sum is exact, unless the numbers are floats.
func Add(a, b Value) (Value, error) {
	switch {
	case a.kind == KindInteger && b.kind == KindInteger:
		x, y := a.Int(), b.Int()
		sum := x + y
		if (sum > x) != (y > 0) {
			return Value{}, fmt.Errorf("%d added to %d of the same batch exceeds 64 bits", y, x)
		}
		return Integer(sum), nil
	case a.kind == KindFloat && b.kind == KindFloat:
		sum := a.Float() + b.Float()
		if math.IsInf(sum, 0) {
			return Value{}, fmt.Errorf("%g added to %g of the same batch exceeds a float", b.Float(), a.Float())
		}
		return Float(sum), nil
	case a.kind == KindNumeric && b.kind == KindNumeric:
		x, err := decimal.NewFromString(a.str)
		if err != nil {
			return Value{}, err
		}
		y, err := decimal.NewFromString(b.str)
		if err != nil {
			return Value{}, err
		}
		return String(KindNumeric, x.Add(y).String()), nil
	}
	return Value{}, errors.New("values of different types cannot be added")
}

// Negative reports whether v is a number below zero.
func (v Value) Negative() bool {
	switch v.kind {
	case KindInteger:
		return v.Int() < 0
	case KindFloat:
		return v.Float() < 0
	case KindNumeric:
		return strings.HasPrefix(v.str, "-")
	}
	return false
}

// NumberText formats a number so that a Reader converts the text back to the same value.
func (v Value) NumberText() string {
	switch v.kind {
	case KindInteger:
		return strconv.FormatInt(v.Int(), 10)
	case KindFloat:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	default:
		return v.str
	}
}

// CompareKeys orders two rows of the plan by their keys.
func (p *Plan) CompareKeys(a, b *Row) int {
	for _, i := range p.Key {
		if c := Compare(a.Values[i], b.Values[i]); c != 0 {
			return c
		}
	}
	return 0
}
