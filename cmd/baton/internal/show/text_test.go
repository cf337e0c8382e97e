package show

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestAProgramsOutputIsRawOverAPipeAndHarmlessOnATerminal(t *testing.T) {
	for _, tc := range []struct{ printed, want string }{
		{"plain\ttext\n\x1b[1;31mred\x1b[0m\r\nnext", "plain\ttext\n\x1b[1;31mred\x1b[0m\nnext"},
		{"\x1b[2Jwiped\x1b]0;title\a", `\x1b[2Jwiped\x1b]0;title\a`},
		{"50 %\r99 %\n", "50 % 99 %\n"},
		{"日本\u009b\xff", `日本\u009b\xff`},
		{"ends in \x1b[3", `ends in \x1b[3`},
	} {
		for _, size := range []int{1, 2, 3, len(tc.printed)} {
			var b strings.Builder
			r := NewRaw(&b)
			for rest := tc.printed; rest != ""; rest = rest[min(size, len(rest)):] {
				if _, err := r.Write([]byte(rest[:min(size, len(rest))])); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.End(); err != nil || b.String() != tc.want+"\x1b[0m" {
				t.Errorf("%q in parts of %d: %q, want %q, %v", tc.printed, size, b.String(), tc.want, err)
			}
		}
	}
}

func TestTextsAreWrittenAsOneHarmlessLine(t *testing.T) {
	type named string
	for _, tc := range []struct {
		format string
		arg    any
		want   string
	}{
		{"%s", "Jörg 日本 🎉", "Jörg 日本 🎉"},
		{"%s", "a\nb\tc\x1b[2J\a\u0085", `a b c\x1b[2J\a\u0085`},
		{"%-6s|", named("a\n"), "a     |"},
		{"%q", "a\n\x1b", `"a\n\x1b"`},
		{"%v", errors.New("a\x1bb"), `a\x1bb`},
		{"%v", []string{"a\x1bb"}, `[a\x1bb]`},
		{"%s", SafeText("\x1b[31ma\x1b[0m"), "\x1b[31ma\x1b[0m"},
		{"%s", LinesOf("a\n\tb\x1b"), "a\n\tb\\x1b"},
		{"%5.1f", 1.25, "  1.2"},
		{"%s", 1500 * time.Millisecond, "1.5s"},
		{"%d", 7, "7"},
	} {
		var b strings.Builder
		if err := Say(&b, tc.format, tc.arg); err != nil || b.String() != tc.want {
			t.Errorf("%s of %q: %q, want %q, %v", tc.format, tc.arg, b.String(), tc.want, err)
		}
	}
}

func TestTimesOfAnElectionAreInTheZoneOfTheTerminal(t *testing.T) {
	at := time.Date(2027, 3, 28, 1, 2, 3, 0, time.FixedZone("elsewhere", 5*3600+1800))
	if got, want := Here(at), at.Local().Format("2006-01-02 15:04:05 -07:00"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := Moment(at); got != "2027-03-28 01:02:03 +05:30" {
		t.Error(got)
	}
}
