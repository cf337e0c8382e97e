package elector

import (
	"time"

	"baton/internal/heartbeat"
)

// aside tells how far a node that has given the lead up lets others go first: until then it asks as an observer. After a step-down that
// is over as soon as others have had their turn; after an abdication it is not, since this node cannot do the work even if others have
// led meanwhile.
type aside struct {
	until heartbeat.Instant // 0: it does not
	over  <-chan struct{}   // nil after a step-down
	firm  bool
	epoch int64 // of the term that was given up
}

// standsAside reports whether this node lets others go first, by the store's last answer.
func (e *Elector) standsAside(last Answer) bool {
	a := e.aside
	if a.until == 0 {
		return false
	}
	over := e.cfg.Clock() >= a.until || !a.firm && last.Epoch > a.epoch
	select {
	case <-a.over:
		over = true
	default:
	}
	if over {
		e.aside = aside{}
	}
	return !over
}

// within is d, or less if this node lets others go first for less.
func (a aside) within(now heartbeat.Instant, d time.Duration) time.Duration {
	if a.until == 0 {
		return d
	}
	return min(d, a.until.Sub(now))
}
