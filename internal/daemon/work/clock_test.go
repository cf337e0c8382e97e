package work

import (
	"testing"
	"time"

	"go.uber.org/zap"
)

// Steps of the clock of slots are reported, and cause work. So the clock of slots does not change while the other clock only drifts, or
// while an answer is dated a little wrong.
func TestTheClockOfSlotsIsChangedWhereItMust(t *testing.T) {
	var told time.Duration
	c := NewClock(zap.NewNop(), func(ahead time.Duration) { told = ahead })
	changed := func() bool {
		select {
		case <-c.WasSet():
			return true
		default:
			return false
		}
	}
	for _, step := range []struct{ behind, want time.Duration }{
		{4 * time.Second, 0}, {-4 * time.Second, 0},
		{-time.Hour, -time.Hour}, {-time.Hour - 900*time.Millisecond, -time.Hour}, {-time.Hour - 2*time.Second, -time.Hour - 2*time.Second},
		{3 * time.Second, 0}, {time.Minute, time.Minute}, {5 * time.Second, 0},
	} {
		before := time.Duration(c.behind.Load())
		c.heard(step.behind)
		if heard := changed(); heard != (step.want != before) {
			t.Errorf("%v behind, after %v: the jobs are told of a change: %t", step.behind, before, heard)
		}
		if step.want != before && told != -step.behind {
			t.Errorf("%v behind: the others are told that it is %v ahead", step.behind, told)
		}
		if got := time.Duration(c.behind.Load()); got != step.want {
			t.Errorf("%v behind: the clock is put forward by %v, want %v", step.behind, got, step.want)
		}
		if off := time.Until(c.Now()) - step.want; off.Abs() > time.Second {
			t.Errorf("%v behind: it is off by %v", step.behind, off)
		}
	}
}
