package parts

import (
	"strings"

	"baton/internal/flush/source/idlist"
)

// Whole collects a stage that must be cut by order.
//
// The cut depends only on the fields. So if Redis loses the text that describes the cut in a failover, the next reader makes the same cut.
type Whole struct {
	of, size int
	text     []byte       // pairs, as in a Window
	long     bool         // the text became too long, and was dropped
	fields   *idlist.List // collected during the scan, which takes Redis longer than the collecting takes
}

// mostText is the maximum length in bytes of all fields together for a cut by order. The pairs in memory may have twice as many bytes.
const mostText = 8 << 20

// NewWhole returns a Whole for a stage with this number of parts. The second argument is the number of fields that the stage had when it
// was made.
func NewWhole(of, size int) *Whole { return &Whole{of: of, size: size, fields: &idlist.List{}} }

// Add adds a field and its value.
func (w *Whole) Add(field, value []byte) {
	if w.long {
		return
	}
	at := len(w.text)
	if w.text = pack(w.text, field, value); len(w.text) > 2*mostText { // twice the maximum, because fields may come twice
		w.text, w.fields, w.long = nil, nil, true
		return
	}
	from, to := end(w.text, at)
	w.fields.AddAt(from, to-from)
}

// Cut sorts the fields in the order of a database's key, and cuts them into parts of equal size. It returns the text that Of parses. Cut
// chooses the cut by hash if the fields are too long, or if fields have vanished since the stage was made.
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

// Take returns the pairs of a part, in the order of the fields.
func (w *Whole) Take(part int) []Pair {
	from, to := share(w.fields.Len(), part, w.of)
	places := w.fields.Range(from, to)
	var all strings.Builder // one allocation for all pairs
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
