package sql

import (
	"fmt"
	"strconv"
	"time"

	"baton/internal/flush/row"
)

// Text converts a value that a query has returned into a text. NULL becomes "".
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []byte:
		return string(v)
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

func texts(row []any) []string {
	out := make([]string, len(row))
	for i, v := range row {
		out[i] = Text(v)
	}
	return out
}

// integer converts a value that a query has returned into a whole number.
func integer(v any) (int64, error) {
	if n, ok := v.(int64); ok {
		return n, nil
	}
	return strconv.ParseInt(Text(v), 10, 64)
}

// Argument converts a value into an argument of a statement: nil, int64, float64, string or []byte. The drivers of database/sql accept
// these types.
func Argument(v *row.Value) any {
	switch v.Kind() {
	case row.KindNull:
		return nil
	case row.KindInteger:
		return v.Int()
	case row.KindFloat:
		return v.Float()
	case row.KindBoolean:
		if v.Bool() {
			return int64(1)
		}
		return int64(0)
	case row.KindTimestamp, row.KindDate:
		return string(AppendText(make([]byte, 0, len(timestampText)), v))
	case row.KindBytes:
		return []byte(v.Text())
	default:
		return v.Text()
	}
}

// These are the layouts of times as texts. The times are in UTC.
const (
	timestampText = "2006-01-02 15:04:05.000000"
	dateText      = "2006-01-02"
)

// AppendText appends the value as a text that databases parse as the same value.
func AppendText(buf []byte, v *row.Value) []byte {
	switch v.Kind() {
	case row.KindInteger:
		return strconv.AppendInt(buf, v.Int(), 10)
	case row.KindFloat:
		return strconv.AppendFloat(buf, v.Float(), 'g', -1, 64)
	case row.KindBoolean:
		return strconv.AppendBool(buf, v.Bool())
	case row.KindTimestamp:
		return v.Time().AppendFormat(buf, timestampText)
	case row.KindDate:
		return v.Time().AppendFormat(buf, dateText)
	}
	return append(buf, v.Text()...)
}

// TimeUnit returns the smallest step of a time with the given number of digits after the second. For digits outside of 0 to 5 it returns a
// microsecond.
func TimeUnit(digits int) time.Duration {
	if digits < 0 || digits > 5 {
		return time.Microsecond
	}
	unit := time.Second
	for range digits {
		unit /= 10
	}
	return unit
}
