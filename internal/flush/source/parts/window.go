// Package parts cuts a stage of counters into parts that are the same at every reading, without Redis.
package parts

import (
	"encoding/binary"

	"baton/internal/flush/source/idlist"
)

// Pair is one field of a hash.
type Pair struct{ Field, Value string }

// partCost is the memory of an empty part.
const partCost = 24

// Window collects the parts lo ≤ part < Hi. It drops parts at its upper end when they outgrow the budget, down to a single part, which is
// always kept.
//
// The pairs of a part are in one slice, one after the other, each text after its length: as strings they would take three times as much,
// so that a big stage would have to be scanned three times as often.
type Window struct {
	Dealing
	Hi            int
	lo            int
	budget, bytes int
	parts         [][]byte
}

// NewWindow begins with the part lo. The budget is in bytes.
func NewWindow(lo int, dealt Dealing, budget int) *Window {
	hi := min(dealt.of, lo+max(1, budget/2/partCost))
	return &Window{lo: lo, Hi: hi, Dealing: dealt, budget: budget, bytes: (hi - lo) * partCost, parts: make([][]byte, hi-lo)}
}

// Add adds a pair, if its part is in the window.
func (w *Window) Add(field, value []byte) {
	part := w.part(field)
	if part < w.lo || part >= w.Hi {
		return
	}
	text := w.parts[part-w.lo]
	w.bytes -= cap(text)
	text = pack(text, field, value)
	w.bytes += cap(text)
	w.parts[part-w.lo] = text
	for w.bytes > w.budget && w.Hi-w.lo > 1 {
		w.Hi--
		w.bytes -= cap(w.parts[w.Hi-w.lo])
		w.parts[w.Hi-w.lo] = nil
	}
}

// Take hands a part over and forgets it, in the order of a database's key. HSCAN may return a
// field more than once.
func (w *Window) Take(part int) []Pair {
	packed := w.parts[part-w.lo]
	w.parts[part-w.lo] = nil
	text := string(packed) // one allocation for all
	fields := fieldsOf(packed)
	fields.Sort()
	pairs := make([]Pair, 0, fields.Len())
	for at, size := range fields.Each() {
		from, to := end(packed, at+size)
		pairs = append(pairs, Pair{Field: text[at : at+size], Value: text[from:to]})
	}
	return pairs
}

func pack(to, field, value []byte) []byte {
	to = append(binary.AppendUvarint(to, uint64(len(field))), field...)
	return append(binary.AppendUvarint(to, uint64(len(value))), value...)
}

// fieldsOf lists the fields of pairs.
func fieldsOf(packed []byte) *idlist.List {
	fields := (&idlist.List{}).Over(packed)
	for at := 0; at < len(packed); {
		from, to := end(packed, at)
		fields.AddAt(from, to-from)
		_, at = end(packed, to)
	}
	return fields
}

// end is the place of a text whose length is at that place.
func end(packed []byte, at int) (from, to int) {
	size, long := binary.Uvarint(packed[at:])
	return at + long, at + long + int(size)
}
