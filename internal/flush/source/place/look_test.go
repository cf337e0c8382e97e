package place

import (
	"strings"
	"testing"
)

// A Redis before 7.0 does not count entries. So if it is unknown whether there is a gap, it must count as one.
func TestGapOfARedisThatDoesNotCountIsNotGuessedAway(t *testing.T) {
	id := func(n uint64) ID { return ID{ms: n} }
	at := Place{ID: id(5)}
	for _, c := range []struct {
		what string
		l    Look
		at   Place
		say  string
	}{
		{"the anchor is there", Look{Last: id(9), First: id(1), Anchor: true}, at, ""},
		{"nothing was added since", Look{Last: id(5)}, at, ""},
		{"the beginning of everything", Look{Last: id(9), First: id(3)}, Place{}, ""},
		{"trimmed", Look{Last: id(9), First: id(6)}, at, "may have been trimmed"},
		{"empty", Look{Last: id(9)}, at, "may have been trimmed"},
		{"trimmed, and it counts by now", Look{Last: id(9), First: id(6), Length: 4, Added: 9}, at, "may have been trimmed"},
		{"the anchor is gone", Look{Last: id(9), First: id(1)}, at, "does not show which"},
		{"behind", Look{Last: id(4), First: id(1)}, at, "before the position"},
	} {
		c.l.Exists = true
		if c.l.Added == 0 {
			c.l.Added = -1
		}
		if got, _ := c.l.Gap(c.at); (got == "") != (c.say == "") || !strings.Contains(got, c.say) {
			t.Errorf("%s: %q, want %q", c.what, got, c.say)
		}
	}
	uncounted := Look{Exists: true, Length: 7, Last: id(9), First: id(3), Behind: id(6), Added: -1}
	if n := uncounted.Pending(at); n != 7 {
		t.Errorf("%d are pending, want as many as there can be", n)
	}
	uncounted.Behind = ID{}
	if n := uncounted.Pending(at); n != 0 {
		t.Errorf("%d are pending at the end", n)
	}
}
