package elector

import (
	"time"

	"baton/internal/heartbeat"
)

// coolDown describes a period after a node has given up the lead. During this period the node asks only as an observer, so that other nodes
// can lead. After a step-down this period ends early when another node has led. After an abdication it does not end early for this reason,
// because this node still cannot do the work.
type coolDown struct {
	until heartbeat.Instant // 0: there is no cool-down
	over  <-chan struct{}   // nil after a step-down
	firm  bool
	epoch int64 // of the term that was given up
}

// isCoolingDown reports whether this node is still in its cool-down and lets other nodes lead. The argument last is the store's last
// answer.
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

// within returns the shorter of d and the time that is left of the cool-down. Without a cool-down it returns d.
func (c coolDown) within(now heartbeat.Instant, d time.Duration) time.Duration {
	if c.until == 0 {
		return d
	}
	return min(d, c.until.Sub(now))
}
