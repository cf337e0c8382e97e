package parts

import (
	"strings"

	"baton/internal/flush/source/idlist"
)

// Whole collects a stage that must be cut by order.
//
// The cut follows from the fields alone: Redis may lose the text with the cut in a failover.
type Whole struct {
	of, size int
	text     []byte       // pairs, as in a window
	long     bool         // the text is too long, and was dropped
	fields   *idlist.List // found while Redis scans, which takes longer
}

// mostText is how much text is cut by order, in bytes.
const mostText = 8 << 20

// NewWhole is for a stage with that many parts, and that many fields when it was made.
func NewWhole(of, size int) *Whole { return &Whole{of: of, size: size, fields: &idlist.List{}} }

// Add adds a pair.
func (w *Whole) Add(field, value []byte) {
	if w.long {
		return
	}
	at := len(w.text)
	if w.text = pack(w.text, field, value); len(w.text) > 2*mostText { // some may come twice
		w.text, w.fields, w.long = nil, nil, true
		return
	}
	from, to := end(w.text, at)
	w.fields.AddAt(from, to-from)
}

// Cut sorts the fields in the order of a database's key, and cuts them into parts of the same size: see [Dealing.Ends]. By hash, if they
// are too long, or if fields have vanished since the stage was made.
func (w *Whole) Cut() (ends string) {
	if w.long {
		return byHash
	}
	w.fields.Over(w.text).Sort()
	length := 0
	for _, size := range w.fields.Each() {
		length += size
	}
	if w.fields.Len() != w.size || w.size < w.of || length > mostText {
		return byHash
	}
	return endsOf(w.fields, w.of)
}

// Take hands over a part.
func (w *Whole) Take(part int) []Pair {
	from, to := share(w.fields.Len(), part, w.of)
	places := w.fields.Range(from, to)
	var all strings.Builder // one allocation for all
	for at, size := range places.Each() {
		_, to := end(w.text, at+size)
		all.Write(w.text[at:to])
	}
	text := all.String()
	pairs := make([]Pair, 0, to-from)
	for at, size := range places.Each() {
		from, to := end(w.text, at+size)
		pairs = append(pairs, Pair{Field: text[:size], Value: text[from-at : to-at]})
		text = text[to-at:]
	}
	return pairs
}
