package crash_test

import "testing"

// A process that is killed at any step of the protocol, however often it had come
// by that step, leaves what a fresh process finishes exactly.
func TestProcessKilledAtAnyStepIsFinishedExactly(t *testing.T) {
	everywhere(t, func(t *testing.T, l *lab) {
		for _, s := range l.matrix(t, every) {
			t.Run(s.String(), func(t *testing.T) {
				c := l.cell(t, s.kind)
				c.fill()
				c.killed(s.point)
				c.traffic("second")
				c.expire()
				c.finished()
				c.check()
			})
		}
		l.nothingLeft(t)
	})
}
