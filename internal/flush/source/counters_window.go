package source

import (
	"encoding/binary"

	"baton/internal/flush/source/idlist"
)

// pair is one field of a hash.
type pair struct{ field, value string }

// partCost is what a part takes even if nothing is in it.
const partCost = 24

// window collects the parts lo ≤ part < hi. It gives up parts at its upper end
// when they outgrow the budget, down to a single part, which is always kept.
//
// The pairs of a part lie one behind the other in one slice, each text after its length:
// as strings they would take three times as much, so that a big
// stage would have to be scanned three times as often.
type window struct {
	lo, hi, of    int
	budget, bytes int
	parts         [][]byte
}

func newWindow(lo, of, budget int) *window {
	hi := min(of, lo+max(1, budget/2/partCost))
	return &window{lo: lo, hi: hi, of: of, budget: budget, bytes: (hi - lo) * partCost, parts: make([][]byte, hi-lo)}
}

func (w *window) add(field, value []byte) {
	part := idlist.Part(field, w.of)
	if part < w.lo || part >= w.hi {
		return
	}
	text := w.parts[part-w.lo]
	w.bytes -= cap(text)
	text = append(binary.AppendUvarint(text, uint64(len(field))), field...)
	text = append(binary.AppendUvarint(text, uint64(len(value))), value...)
	w.bytes += cap(text)
	w.parts[part-w.lo] = text
	for w.bytes > w.budget && w.hi-w.lo > 1 {
		w.hi--
		w.bytes -= cap(w.parts[w.hi-w.lo])
		w.parts[w.hi-w.lo] = nil
	}
}

// take hands a part over and forgets it, in the order of a database's key. HSCAN may return a
// field more than once.
func (w *window) take(part int) []pair {
	packed := w.parts[part-w.lo]
	w.parts[part-w.lo] = nil
	text := string(packed) // one allocation for all
	fields, n := idlist.Over(packed), 0
	end := func(at int) (from, to int) { // of the text whose length is at
		size, long := binary.Uvarint(packed[at:])
		return at + long, at + long + int(size)
	}
	for at := 0; at < len(packed); n++ {
		from, to := end(at)
		fields.AddAt(from, to-from)
		_, at = end(to)
	}
	fields.Sort()
	pairs := make([]pair, 0, n)
	for at, size := range fields.Each() {
		from, to := end(at + size)
		pairs = append(pairs, pair{field: text[at : at+size], value: text[from:to]})
	}
	return pairs
}
