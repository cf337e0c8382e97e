package show

import (
	"fmt"
	"strings"
	"testing"
)

func TestTablesAreAlignedWhateverIsInThem(t *testing.T) {
	write := func(width int, live bool) string {
		var b strings.Builder
		s := &Sheet{Writer: &b, Colour: true, Width: width, Live: live}
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
	if got := write(0, false); got != whole {
		t.Errorf("got\n%q\nwant\n%q", got, whole)
	}
	const cut = "JOB   STAT…\n日本  \x1b[31mfail…\x1b[0m\ne\u0301     read…\nno table\na  b\n"
	if got := write(11, true); got != cut {
		t.Errorf("on 11 columns:\n%q\nwant\n%q", got, cut)
	}
	for line := range strings.SplitSeq(cut, "\n") {
		if n := TextWidth(line); n > 11 {
			t.Errorf("%q takes %d columns", line, n)
		}
	}
}

func TestATableThatIsTooWideLosesNothing(t *testing.T) {
	var b strings.Builder
	w := NewTable(SheetOf(&b, false, 40))
	_, _ = fmt.Fprint(w, "JOB\tSCHEDULE\tSTATE\tOWNER\tREASON\n"+
		"article-views\t@every 5s\tready\t5ce0fc88-c086\tcolumn views: not a number\n"+
		"x\t-\tfailing\t-\t-\n")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	const want = "JOB            SCHEDULE   STATE\n    OWNER          REASON\n" +
		"article-views  @every 5s  ready\n    5ce0fc88-c086\n    column views: not a number\n" +
		"x              -          failing\n    -              -\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b.Reset()
	_, _ = fmt.Fprint(w, "state\tthe words go on below where they began, however many there are\n")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "state  the words go on below where they\n       began, however many there are\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestEpochsAreToldApartByTheirEnd(t *testing.T) {
	for epoch, want := range map[int64]string{42: "42", 1795536769481: "…769481", 1795536000001: "…000001"} {
		if got := Epoch(epoch); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
