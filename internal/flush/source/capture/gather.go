package capture

import (
	"context"
	"time"
)

// The pause between two batches grows with the number of keys in the last batch. Below 1,000 changes a second there is almost no pause.
// Above 10,000 changes a second the pause has its maximum. A key that changes several times during the pause is then read and written only
// once.
const (
	pauseOfKey    = 100 * time.Microsecond
	longestGather = 250 * time.Millisecond
)

// gatherTime returns how long the feed still collects changes before the next batch.
func (f *feed) gatherTime() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.emptied != "" || f.passes() || !f.joined {
		return 0
	}
	return min(time.Duration(f.taken)*pauseOfKey, longestGather) - time.Since(f.takenAt)
}

// gather waits for the time that gatherTime returns.
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
