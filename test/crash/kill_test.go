package crash_test

import "testing"

// tries is the maximum number of processes that are started until a flush reaches the step. Several may be necessary, because the number
// of pages of a capture depends on the arrival of its changes.
const tries = 20

// A process is killed at any step of the protocol, regardless of how often it has reached the step. The test checks that a fresh process
// then finishes the work exactly.
//
// The process that finishes one job is the next process to be killed, during another job. This saves half of the processes.
func TestProcessKilledAtAnyStepIsFinishedExactly(t *testing.T) {
	everywhere(t, func(t *testing.T, l *lab) {
		var left *cell
		for _, s := range l.matrix(t, killed, passings) {
			for try := 1; ; try++ {
				c := l.cell(t, s.kind)
				c.name = "killed at " + s.String()
				c.fill()
				victim := c.spec("victim")
				victim.KillAt = s.point
				specs := []spec{victim}
				if left != nil {
					specs = []spec{left.spec("fresh"), victim}
				}
				stderr, err := process(t.Context(), specs...)
				killed := isKilled(err)
				if !killed && (err != nil || try == tries) {
					t.Fatalf("the process was to be %s, but ended with %v: it never came there\n%s", c.name, err, stderr)
				}
				if left != nil {
					left.check()
				}
				if killed {
					left = c
					c.traffic("second")
					c.expire()
					break
				}
				left = nil
				c.check()
			}
		}
		if stderr, err := process(t.Context(), left.spec("fresh")); err != nil {
			t.Fatalf("a fresh process could not finish: %v\n%s", err, stderr)
		}
		left.check()
		l.nothingLeft(t)
	})
}
