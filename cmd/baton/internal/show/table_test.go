package show

import (
	"fmt"
	"strings"
	"testing"
)

func TestTablesAreAlignedWhateverIsInThem(t *testing.T) {
	write := func(width int) string {
		var b strings.Builder
		s := &Sheet{&b, true, width}
		w := NewTable(s)
		_, _ = fmt.Fprint(w, "JOB\tSTATE\tNOTE\n")
		_, _ = fmt.Fprintf(w, "日本\t%s\tdouble width\n", Paint(w, Bad, "failing"))
		_, _ = fmt.Fprint(w, "e\u0301\tready\tno width\nno table\na\tb\n")
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const whole = "JOB   STATE    NOTE\n日本  \x1b[31mfailing\x1b[0m  double width\ne\u0301     ready    no width\nno table\na  b\n"
	if got := write(0); got != whole {
		t.Errorf("got\n%q\nwant\n%q", got, whole)
	}
	const cut = "JOB   STAT…\n日本  \x1b[31mfail…\x1b[0m\ne\u0301     read…\nno table\na  b\n"
	if got := write(11); got != cut {
		t.Errorf("on 11 columns:\n%q\nwant\n%q", got, cut)
	}
	for line := range strings.SplitSeq(cut, "\n") {
		if n := TextWidth(line); n > 11 {
			t.Errorf("%q takes %d columns", line, n)
		}
	}
}
