package crash_test

import "testing"

// What is written while a flush is at any step is neither lost with what that
// removes nor counted twice with what it reads.
func TestWriteAtAnyStepIsFlushedExactly(t *testing.T) {
	everywhere(t, func(t *testing.T, l *lab) {
		var now *tally
		st := l.open(t, l.spec("node"), func(b boundary) error { return now.observe(b) })
		for _, s := range l.matrix(t, written, passings) {
			t.Run(s.String(), func(t *testing.T) {
				c := l.cell(t, s.kind)
				c.fill()
				now = newTally(s.point, func() error { c.traffic("second"); return nil })
				n := c.leader("node", st, now.observe)
				if err := n.flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				c.release(n)
				if c.kind.looks() || c.kind.follows() { // it may not have been heard of yet
					c.fresh()
				}
				c.check()
			})
		}
		l.nothingLeft(t)
	})
}
