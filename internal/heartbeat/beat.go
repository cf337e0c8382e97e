package heartbeat

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Beat gives all leases of a process the same moments of renewal, so that their
// renewals can share a round trip.
type Beat struct {
	mu   sync.Mutex
	next Instant
}

// wait is the time until w's lease is to be renewed: its interval, or the next
// common moment, which the first to ask after the last one sets. A lease with a
// shorter interval than the others does not wait for them.
func (b *Beat) wait(w *Window) time.Duration {
	own := jittered(w.timing.Interval)
	if b == nil {
		return own
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := w.clock()
	if b.next <= now {
		b.next = now.Add(own)
	}
	return min(b.next.Sub(now), w.timing.Interval*11/10)
}

// jittered spreads the renewals of many holders: d ± 10 %.
func jittered(d time.Duration) time.Duration {
	return d*9/10 + rand.N(d/5+1)
}
