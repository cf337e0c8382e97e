package warden

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// A command with a limited number of processes must not inherit the right to a real-time priority from the daemon: it could take the
// processors from its warden. The limits are compared, because few hosts let a test raise this limit.
func TestALimitedCommandHasNoRightToARealTimePriority(t *testing.T) {
	processes, memory := Limit{unix.RLIMIT_NPROC, 4000}, Limit{unix.RLIMIT_AS, 1 << 30}
	for _, c := range []struct{ given, want []Limit }{
		{[]Limit{memory, processes}, []Limit{{unix.RLIMIT_RTPRIO, 0}, memory, processes}},
		{[]Limit{memory}, []Limit{memory}}, // its warden has no precedence
		{nil, nil},
	} {
		if got := (Settings{Limits: c.given}).limits(); !slices.Equal(got, c.want) {
			t.Errorf("the limits %v become %v, want %v", c.given, got, c.want)
		}
	}
}
