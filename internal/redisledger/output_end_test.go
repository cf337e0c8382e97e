package redisledger

import (
	"bytes"
	"fmt"
	"testing"
)

// What a command printed last says what went wrong.
func TestOfMuchOutputTheEndIsKept(t *testing.T) {
	l, _ := newOutputs(t)
	var all []byte
	for i := 0; len(all) < 3*KeepOutput; i++ {
		piece := bytes.Repeat(fmt.Appendf(nil, "line %06d\n", i), 1000)
		printed(t, l, "run", int64(len(all)), string(piece))
		all = append(all, piece...)
	}
	o, err := l.ReadOutput(t.Context(), "report", "run", 0)
	if err != nil || len(o.Text) < KeepOutput || o.Offset+int64(len(o.Text)) != int64(len(all)) || !bytes.Equal(o.Text, all[o.Offset:]) {
		t.Errorf("%d bytes from %d that begin %.12q and end %.12q, %v; want the end of %d", len(o.Text), o.Offset, o.Text,
			o.Text[max(0, len(o.Text)-12):], err, len(all))
	}
}
