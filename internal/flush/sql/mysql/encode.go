package mysql

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

// Types of parameters in the protocol.
const (
	typeDouble   = 5
	typeNull     = 6
	typeLongLong = 8
	typeDate     = 10
	typeDateTime = 12
	typeString   = 254
)

// errTooLong: the packet would be longer than what is kept in memory for it, or than the server takes.
var errTooLong = errors.New("too long for one packet")

// appendExecute appends the packet that executes a statement with the values of these rows as
// its parameters, after room for its head. They are the same as those that sql.Argument makes.
func appendExecute(buf []byte, statement uint32, p *row.Plan, rows []row.Row, columns []int, limit int) ([]byte, error) {
	parameters := len(rows) * len(columns)
	buf = append(buf, 0, 0, 0, 0, comStmtExecute)
	buf = binary.LittleEndian.AppendUint32(buf, statement)
	buf = append(buf, 0, 1, 0, 0, 0) // no cursor, once
	nulls := len(buf)
	buf = append(buf, make([]byte, (parameters+7)/8)...)
	buf = append(buf, 1) // types follow
	types := len(buf)
	buf = append(buf, make([]byte, 2*parameters)...)
	i := 0
	for r := range rows {
		for _, c := range columns {
			v := &rows[r].Values[c]
			if len(buf)+len(v.Text())+longestHead > limit {
				return buf, errTooLong
			}
			if !finite(v) {
				return buf, infinite(p, c)
			}
			var kind byte
			if buf, kind = appendValue(buf, v); kind == typeNull {
				buf[nulls+i/8] |= 1 << (i % 8)
			}
			buf[types+2*i] = kind
			i++
		}
	}
	return buf, nil
}

// longestHead is no less than what a value takes beside its text.
const longestHead = 32

func appendValue(buf []byte, v *row.Value) (_ []byte, kind byte) {
	switch v.Kind() {
	case row.KindNull:
		return buf, typeNull
	case row.KindInteger:
		return binary.LittleEndian.AppendUint64(buf, uint64(v.Int())), typeLongLong
	case row.KindBoolean:
		n := uint64(0)
		if v.Bool() {
			n = 1
		}
		return binary.LittleEndian.AppendUint64(buf, n), typeLongLong
	case row.KindFloat:
		return binary.LittleEndian.AppendUint64(buf, math.Float64bits(v.Float())), typeDouble
	case row.KindTimestamp, row.KindDate:
		return appendTime(buf, v)
	}
	return append(appendLength(buf, len(v.Text())), v.Text()...), typeString
}

// appendTime appends a time in the protocol's form, which spares the server reading a text. A year
// that has no four digits is left to the server's judgement, as a text.
func appendTime(buf []byte, v *row.Value) (_ []byte, kind byte) {
	t := v.Time()
	year, month, day := t.Date()
	if year < 1 || year > 9999 {
		var text [32]byte
		in := sql.AppendText(text[:0], v)
		return append(appendLength(buf, len(in)), in...), typeString
	}
	length := byte(4)
	kind = typeDate
	micros := uint32(t.Nanosecond() / int(time.Microsecond))
	if v.Kind() == row.KindTimestamp {
		length, kind = 7, typeDateTime
		if micros != 0 {
			length = 11
		}
	}
	buf = append(buf, length, byte(year), byte(year>>8), byte(month), byte(day))
	if length > 4 {
		hour, minute, second := t.Clock()
		buf = append(buf, byte(hour), byte(minute), byte(second))
	}
	if length > 7 {
		buf = binary.LittleEndian.AppendUint32(buf, micros)
	}
	return buf, kind
}

// appendLength appends the length of a text.
func appendLength(buf []byte, n int) []byte {
	switch {
	case n < 251:
		return append(buf, byte(n))
	case n < 1<<16:
		return append(buf, 0xfc, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(buf, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(buf, 0xfe), uint64(n))
}
