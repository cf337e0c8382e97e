package crash_test

import "testing"

// The test writes while a flush is at any step. The written data must not be lost with the data that the flush removes, or counted twice
// with the data that the flush reads.
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
				if c.kind.looks() || c.kind.follows() { // the source may not know of the change yet
					c.fresh()
				}
				c.check()
			})
		}
		l.nothingLeft(t)
	})
}
