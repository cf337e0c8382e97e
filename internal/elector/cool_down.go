package elector

import (
	"time"

	"baton/internal/heartbeat"
)

// coolDown is the time in which a node that has given the lead up lets others go first: it asks as an observer. After a step-down that
// is over as soon as others have had their turn; after an abdication it is not, since this node cannot do the work even if others have
// led meanwhile.
type coolDown struct {
	until heartbeat.Instant // 0: it does not
	over  <-chan struct{}   // nil after a step-down
	firm  bool
	epoch int64 // of the term that was given up
}

// isCoolingDown reports whether this node lets others go first, by the store's last answer.
func (e *Elector) isCoolingDown(last Answer) bool {
	c := e.coolDown
	if c.until == 0 {
		return false
	}
	over := e.cfg.Clock() >= c.until || !c.firm && last.Epoch > c.epoch
	select {
	case <-c.over:
		over = true
	default:
	}
	if over {
		e.coolDown = coolDown{}
	}
	return !over
}

// within is d, or less if this node lets others go first for less.
func (c coolDown) within(now heartbeat.Instant, d time.Duration) time.Duration {
	if c.until == 0 {
		return d
	}
	return min(d, c.until.Sub(now))
}
