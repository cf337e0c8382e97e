package heartbeat

import (
	"fmt"
	"time"
)

// Timing contains the durations of a lease. Its methods compute the limits of the lease.
type Timing struct {
	TTL      time.Duration // how long the store keeps the lease without a renewal
	Interval time.Duration // between renewals, ±10 %
	Timeout  time.Duration // of one attempt, including dialling
	Margin   time.Duration // between the hard stop and the end of the lease
	Drain    time.Duration // between the soft stop and the hard stop
}

// DefaultMargin returns 250 ms, for a late scheduler, plus 1 % of the TTL, for clocks that run at different speeds.
func DefaultMargin(ttl time.Duration) time.Duration {
	return 250*time.Millisecond + ttl/100
}

// Validate refuses a timing that would end the term after one missed renewal: two intervals, an attempt that times out, Drain and
// Margin must fit into the TTL.
func (t Timing) Validate() error {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"ttl", t.TTL}, {"heartbeat_interval", t.Interval}, {"attempt timeout", t.Timeout}, {"margin", t.Margin}, {"drain", t.Drain}} {
		if f.value <= 0 {
			return fmt.Errorf("%s is %v; it must be positive", f.name, f.value)
		}
	}
	if need := 2*t.Interval + t.Timeout + t.Drain + t.Margin; need >= t.TTL {
		return fmt.Errorf("ttl %v is too short: 2 × heartbeat_interval %v + attempt timeout %v + drain %v + margin %v = %v must be less; "+
			"raise ttl or lower the others",
			t.TTL, t.Interval, t.Timeout, t.Drain, t.Margin, need)
	}
	return nil
}
