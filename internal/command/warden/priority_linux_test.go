package warden

import (
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A command with a limited number of processes must not inherit the right to a real-time priority from the daemon: it could take the
// processors from its warden. The test records the calls of setrlimit, because few hosts let a test raise this limit.
func TestALimitedCommandHasNoRightToARealTimePriority(t *testing.T) {
	processes, memory := Limit{unix.RLIMIT_NPROC, 4000}, Limit{unix.RLIMIT_AS, 1 << 30}
	for _, c := range []struct {
		given, want []Limit
		refused     int
		errno       syscall.Errno
	}{
		{[]Limit{memory, processes}, []Limit{{unix.RLIMIT_RTPRIO, 0}, processes, memory}, -1, 0},
		{[]Limit{memory}, []Limit{memory}, -1, 0}, // its warden has no precedence
		{nil, nil, -1, 0},
		{[]Limit{processes}, []Limit{{unix.RLIMIT_RTPRIO, 0}, processes}, unix.RLIMIT_RTPRIO, 0}, // a sandbox may refuse every change of it
		{[]Limit{processes, memory}, []Limit{{unix.RLIMIT_RTPRIO, 0}, processes}, unix.RLIMIT_NPROC, syscall.EPERM},
	} {
		var got []Limit
		errno := (Settings{Limits: c.given}).setLimits(func(resource int, l *syscall.Rlimit) error {
			if got = append(got, Limit{resource, l.Max}); l.Cur != l.Max {
				t.Errorf("the soft limit of resource %d is %d", resource, l.Cur)
			}
			if resource == c.refused {
				return syscall.EPERM
			}
			return nil
		})
		if !slices.Equal(got, c.want) || errno != c.errno {
			t.Errorf("the limits %v with resource %d refused: set %v, %v; want %v, %v", c.given, c.refused, got, errno, c.want, c.errno)
		}
	}
}
