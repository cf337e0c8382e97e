package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestTablesAreAlignedWhateverIsInThem(t *testing.T) {
	write := func(width int) string {
		var b strings.Builder
		s := &sheet{&b, true, width}
		w := newTable(s)
		_, _ = fmt.Fprint(w, "JOB\tSTATE\tNOTE\n")
		_, _ = fmt.Fprintf(w, "日本\t%s\tdouble width\n", paint(w, bad, "failing"))
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
		if n := textWidth(line); n > 11 {
			t.Errorf("%q takes %d columns", line, n)
		}
	}
}

func TestColoursAreForTerminalsAlone(t *testing.T) {
	_, screen := terminal(t, 80, 24)
	for _, tc := range []struct {
		flag    string
		env     map[string]string
		w       io.Writer
		colours bool
	}{
		{"", map[string]string{"TERM": "xterm"}, screen, true},
		{"", map[string]string{"TERM": "xterm"}, io.Discard, false},
		{"", map[string]string{"TERM": "dumb"}, screen, false},
		{"", map[string]string{}, screen, false},
		{"", map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, screen, false},
		{"", map[string]string{"TERM": "xterm", "NO_COLOR": ""}, screen, true},
		{"never", map[string]string{"TERM": "xterm"}, screen, false},
		{"always", map[string]string{"NO_COLOR": "1"}, io.Discard, true},
		{"auto", map[string]string{"TERM": "xterm"}, screen, true},
	} {
		cmd := &cobra.Command{}
		addColourFlag(cmd)
		if tc.flag != "" {
			if err := cmd.PersistentFlags().Set("color", tc.flag); err != nil {
				t.Fatal(err)
			}
		}
		e := env{getenv: func(name string) (string, bool) { v, ok := tc.env[name]; return v, ok }}
		if got := newSheet(cmd, e, tc.w).colour; got != tc.colours {
			t.Errorf("--color %q, %v, terminal %v: colours %v", tc.flag, tc.env, tc.w == screen, got)
		}
	}
}
