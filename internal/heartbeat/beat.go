package heartbeat

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Beat gives all leases of a process the same moments of renewal, so that their
// renewals can share a round trip.
type Beat struct {
	mu     sync.Mutex
	next   Instant
	kept   map[*Window]struct{} // the leases that are being renewed
	looked Instant              // the time when late was computed
	late   bool                 // the last result of Overdue
}

// lookEvery is the minimum time between two checks of all leases. Without it, every caller of Overdue would check them, and hundreds of
// candidates call it at the same moment.
const lookEvery = 10 * time.Millisecond

// Overdue reports whether the renewal of one of the leases is overdue. Work that can wait should then leave the processors to that
// renewal.
func (b *Beat) Overdue(clock Clock) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := clock(); b.looked == 0 || now.Sub(b.looked) >= lookEvery {
		b.looked, b.late = now, false
		for w := range b.kept {
			b.late = b.late || w.Overdue()
		}
	}
	return b.late && len(b.kept) > 0
}

// keeps adds the lease of w to the leases that are being renewed, until the returned function done is called.
func (b *Beat) keeps(w *Window) (done func()) {
	if b == nil {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept == nil {
		b.kept = map[*Window]struct{}{}
	}
	b.kept[w] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.kept, w)
	}
}

// wait returns the time until w's lease must be renewed: its interval, or the time to the next common moment. The first caller after the
// last common moment sets the next one. A lease with a shorter interval than the others does not wait for them.
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

// jittered returns a duration between 90 % and 110 % of d, to spread the renewals of many holders.
func jittered(d time.Duration) time.Duration {
	return d*9/10 + rand.N(d/5+1)
}
