package flush

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"
)

// batchOf converts a page, makes its rows unique by key and sorts them by key.
// Unique, because one statement must not touch a row twice; sorted, because key
// order is what indexes like best and what keeps transactions from deadlock.
func (m *Mapping) batchOf(stage string, p Page, gone OnMissing) Batch {
	b := Batch{ID: stage, Part: p.Part}
	width := len(m.columns)
	values := make([]Value, len(p.Records)*width) // one allocation a page
	b.Rows = make([]Row, 0, len(p.Records))
	for i, r := range p.Records {
		row := Row{Values: values[i*width : (i+1)*width : (i+1)*width]}
		switch ok, err := gone.row(m, &row, r); {
		case err != nil:
			b.Dead = append(b.Dead, m.dead(r, err))
		case ok:
			b.Rows = append(b.Rows, row)
		}
	}
	if len(m.plan.Key) > 0 {
		var dead []DeadLetter
		b.Rows, dead = m.coalesce(b.Rows)
		b.Dead = append(b.Dead, dead...)
	}
	return b
}

func (m *Mapping) dead(r Record, err error) DeadLetter {
	return DeadLetter{Record: RecordJSON(m.plan.Inputs, r), Error: err.Error()}
}

// place is a row's sort key: the first 64 bits of its key, and where it is.
type place struct {
	prefix uint64
	index  int32
}

// coalesce sorts rows by key and merges those of one key in the order in which
// they came. Records that cannot be merged are dead letters.
func (m *Mapping) coalesce(rows []Row) ([]Row, []DeadLetter) {
	places := make([]place, len(rows))
	for i := range rows {
		places[i] = place{prefix: m.prefix(&rows[i]), index: int32(i)}
	}
	order := func(a, b place) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return m.compareKeys(&rows[a.index], &rows[b.index])
	}
	if strictlySorted(places, order) {
		return rows, nil
	}
	slices.SortFunc(places, func(a, b place) int {
		if c := order(a, b); c != 0 {
			return c
		}
		return cmp.Compare(a.index, b.index)
	})
	var dead []DeadLetter
	out := make([]Row, 0, len(rows))
	var last place
	for i, p := range places {
		row := rows[p.index]
		if i == 0 || order(last, p) != 0 {
			out = append(out, row)
			last = p
			continue
		}
		merged, err := m.merge(out[len(out)-1], row)
		if err != nil {
			dead = append(dead, m.dead(row.Record, err))
			continue
		}
		out[len(out)-1] = merged
	}
	return out, dead
}

func strictlySorted(places []place, order func(a, b place) int) bool {
	for i := 1; i < len(places); i++ {
		if order(places[i-1], places[i]) >= 0 {
			return false
		}
	}
	return true
}

// merge puts a later row of the same key on top of an earlier one.
func (m *Mapping) merge(earlier, later Row) (Row, error) {
	switch {
	case m.plan.Keep:
		return earlier, nil
	case later.Delete || later.Replace:
		return later, nil
	case earlier.Delete: // the row begins anew
		later.Replace = true
		return later, nil
	}
	out := later
	out.Replace = earlier.Replace
	out.Values = slices.Clone(later.Values)
	// Its dead letter, if the database refuses the row, must have all that went into it.
	out.Record.Inputs = slices.Clone(later.Record.Inputs)
	for i := range m.columns {
		c := &m.columns[i]
		switch {
		case out.Values[i].IsAbsent():
			out.Values[i] = earlier.Values[i]
			out.Record.Inputs[c.input] = earlier.Record.Inputs[c.input]
		case c.op == OpAdd:
			sum, err := addValues(earlier.Values[i], later.Values[i])
			if err != nil {
				return Row{}, m.misfit(c, err)
			}
			out.Values[i] = sum
			out.Record.Inputs[c.input] = Raw{Text: sum.numberText(), OK: true}
		}
	}
	return out, nil
}

// addValues adds two numbers of one kind exactly, as far as the kind is exact.
func addValues(a, b Value) (Value, error) {
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

// numberText writes a number so that its reader gets the same value again.
func (v Value) numberText() string {
	switch v.kind {
	case KindInteger:
		return strconv.FormatInt(v.Int(), 10)
	case KindFloat:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	default:
		return v.str
	}
}

// prefix maps the first key column to 64 bits in the same order, so that most
// comparisons of a sort touch neither the rows nor their texts. Equal prefixes
// say nothing.
func (m *Mapping) prefix(r *Row) uint64 {
	v := r.Values[m.plan.Key[0]]
	switch v.kind {
	case KindInteger, KindTimestamp, KindDate:
		return v.num ^ 1<<63
	case KindNumeric:
		if m.plan.Columns[m.plan.Key[0]].Kind == KindInteger {
			return math.MaxUint64 // an unsigned integer beyond all signed ones
		}
	case KindText, KindUUID, KindOther, KindBytes, KindJSON:
		var first [8]byte
		copy(first[:], v.str)
		return binary.BigEndian.Uint64(first[:])
	}
	return 0
}

func (m *Mapping) compareKeys(a, b *Row) int {
	for _, i := range m.plan.Key {
		if c := compareValues(a.Values[i], b.Values[i]); c != 0 {
			return c
		}
	}
	return 0
}

// compareValues orders two values of one column; equal ones are one key.
func compareValues(a, b Value) int {
	if a.kind != b.kind {
		// Of one column only an unsigned integer has two kinds, and the larger
		// values are the ones that need decimal digits.
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
