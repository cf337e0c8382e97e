package redisledger

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"baton/internal/job"
)

// The last line is read together with the run that printed the line, because page and status show it beside the exit code.
func TestTheLastRunHasTheLastLineOfItsOutput(t *testing.T) {
	_, l := ledgerRig(t)
	for i, c := range []struct{ output, want string }{
		{"a\nreport: no such host\n\n  \n", "report: no such host"}, {"one line", "one line"}, {" \n", ""}, {"", ""},
		{strings.Repeat("x", 2000), strings.Repeat("x", 512)}, {strings.Repeat("x", 2000) + "\nthe end", "the end"},
	} {
		run := newRun(fmt.Sprintf("r%d", i), i+1, "a")
		claim(t, l, run)
		rec := ended(run, job.StateFailed, "exit code 3")
		rec.Result.Output = c.output
		finish(t, l, rec)
		if got := stateOf(t, l, "users").Last; got == nil || got.ID != run.ID || got.Result.Output != c.want {
			t.Errorf("%.30q: %+v, want %q", c.output, got, c.want)
		}
	}
}

// The last lines of a command usually say what went wrong.
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
