package source

import (
	"encoding/binary"
	"slices"
	"strings"

	"baton/internal/flush/source/idlist"
)

// pair is one field of a hash.
type pair struct{ field, value string }

// partCost is what a part takes even if nothing is in it.
const partCost = 24

// window collects the parts lo ≤ part < hi. It gives up parts at its upper end
// when they outgrow the budget, down to a single part, which is always kept.
//
// The pairs of a part lie one behind the other in one slice, each as its two lengths
// and its two texts: as strings they would take three times as much, so that a big
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
	text = binary.AppendUvarint(text, uint64(len(field)))
	text = binary.AppendUvarint(text, uint64(len(value)))
	text = append(append(text, field...), value...)
	w.bytes += cap(text)
	w.parts[part-w.lo] = text
	for w.bytes > w.budget && w.hi-w.lo > 1 {
		w.hi--
		w.bytes -= cap(w.parts[w.hi-w.lo])
		w.parts[w.hi-w.lo] = nil
	}
}

// take hands a part over and forgets it. HSCAN may return a field more than once.
func (w *window) take(part int) []pair {
	packed := w.parts[part-w.lo]
	w.parts[part-w.lo] = nil
	text := string(packed) // one allocation for all
	var pairs []pair
	for at := 0; at < len(text); {
		field, n := binary.Uvarint(packed[at:])
		value, m := binary.Uvarint(packed[at+n:])
		at += n + m
		middle := at + int(field)
		end := middle + int(value)
		pairs = append(pairs, pair{field: text[at:middle], value: text[middle:end]})
		at = end
	}
	slices.SortFunc(pairs, func(a, b pair) int { return strings.Compare(a.field, b.field) })
	return slices.CompactFunc(pairs, func(a, b pair) bool { return a.field == b.field })
}
