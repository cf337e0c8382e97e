// Package parts cuts a stage of counters into parts, without Redis. Each part is written in one transaction, and the database's ledger
// records its number. So every reading of a stage must give the same parts, also in another version of baton.
//
//	Partitioner  the rule that assigns each field to a part: by the hash of the field, or by the order of the fields
//	Whole        collects a whole stage in memory, and cuts it by order into parts of equal size
//	Window       collects as many parts as fit the memory budget, for one pass over the stage
//
// A cut by order has an advantage: a transaction writes rows that are neighbours in the table. This cut needs the first field of each part.
// The first reader of a stage collects the stage in a Whole and computes these fields. It stores them as a text next to the stage, and
// later readers parse the text with Of. A cut by hash needs no such text.
//
// What fails, and what then:
//
//   - The stage is too large for a cut by order, or fields have vanished since the stage was made: the stage is cut by hash.
//   - Redis loses the text in a failover: the next reader computes the same text, because the text depends only on the fields.
//   - The pairs exceed the memory budget: the Window drops the parts with the highest numbers, and the caller reads the stage again for
//     these parts.
//   - A scan returns a field twice: the duplicate is dropped.
//   - The text is not in the format that baton writes: Of returns an error, and nothing is written.
package parts

import (
	"encoding/binary"

	"baton/internal/flush/source/idlist"
)

// Pair is one field of a hash with its value.
type Pair struct{ Field, Value string }

// partCost is the memory of an empty part, in bytes.
const partCost = 24

// Window collects the pairs of the parts from lo to Hi-1. If the pairs exceed the budget, Window drops the parts with the highest numbers,
// but always keeps at least one part.
//
// The pairs of a part are in one slice, one after the other, each text after its length. As strings they would need three times as much
// memory, so a big stage would have to be scanned three times as often.
type Window struct {
	Partitioner
	Hi            int
	lo            int
	budget, bytes int
	parts         [][]byte
}

// NewWindow returns a window that begins with the part lo. The budget is in bytes.
func NewWindow(lo int, dealt Partitioner, budget int) *Window {
	hi := min(dealt.of, lo+max(1, budget/2/partCost))
	return &Window{lo: lo, Hi: hi, Partitioner: dealt, budget: budget, bytes: (hi - lo) * partCost, parts: make([][]byte, hi-lo)}
}

// Add adds a pair if its part is in the window.
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

// Take returns the pairs of a part in the order of a database's key, and forgets the part. It drops duplicates: HSCAN may return a field
// more than once.
func (w *Window) Take(part int) []Pair {
	packed := w.parts[part-w.lo]
	w.parts[part-w.lo] = nil
	text := string(packed) // one allocation for all pairs
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

// fieldsOf returns the fields of packed pairs.
func fieldsOf(packed []byte) *idlist.List {
	fields := (&idlist.List{}).Over(packed)
	for at := 0; at < len(packed); {
		from, to := end(packed, at)
		fields.AddAt(from, to-from)
		_, at = end(packed, to)
	}
	return fields
}

// end returns where a text begins and ends. The text's length is stored before the text, at the index in the argument at.
func end(packed []byte, at int) (from, to int) {
	size, long := binary.Uvarint(packed[at:])
	return at + long, at + long + int(size)
}
