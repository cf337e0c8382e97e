package capture

import (
	"context"
	"time"
)

// The pause between two batches grows with the keys of the last one. Below 1,000 changes a second it is almost nothing; above 10,000 it
// grows to the longest, and a key that changes several times meanwhile is read and written once.
const (
	pauseOfKey    = 100 * time.Microsecond
	longestGather = 250 * time.Millisecond
)

// gatherTime is how much longer changes are gathered before the next batch.
func (f *feed) gatherTime() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.emptied != "" || f.passes() || !f.joined {
		return 0
	}
	return min(time.Duration(f.taken)*pauseOfKey, longestGather) - time.Since(f.takenAt)
}

// gather waits that long.
func (f *feed) gather(ctx context.Context) error {
	pause := f.gatherTime()
	if pause <= 0 {
		return nil
	}
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
