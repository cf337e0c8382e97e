package work

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"
)

const (
	// lull is how long a flush that was left has had no run before it is released: a run may have its slot and
	// not have begun.
	lull = 5 * time.Second
	// leftEvery is how often releaseLeft looks for such flushes.
	leftEvery = time.Second
)

// leftTask is a flush that a reload has taken out or replaced. Its work between runs would go on without a release.
type leftTask struct {
	boundTask
	idle time.Time // since when it has had no run
}

// leave notes the flushes that are not among those that will be bound. The caller holds t.mu.
func (t *Term) leave(bound map[string]boundTask) {
	for name, b := range t.bound {
		if b.flush != nil && !bound[name].task.Is(b.task) {
			t.left = append(t.left, &leftTask{b, time.Now()})
		}
	}
}

// releaseLeft releases the flushes that were left, once their runs have ended, until all are released or ctx ends.
func (t *Term) releaseLeft(ctx context.Context) {
	for t.releaseIdle(time.Now()) && Rest(ctx, leftEvery) == nil {
	}
}

// releaseIdle releases those that have had no run for a while; false if all are released.
func (t *Term) releaseIdle(now time.Time) (more bool) {
	t.mu.Lock()
	var over []boundTask
	t.left = slices.DeleteFunc(t.left, func(l *leftTask) bool {
		if l.flush.running.Load() > 0 {
			l.idle = now
		}
		if now.Sub(l.idle) < lull {
			return false
		}
		if !t.bound[l.job.Name].continues(l.boundTask) {
			over = append(over, l.boundTask)
		}
		return true
	})
	more = len(t.left) > 0
	t.mu.Unlock()
	t.release(over)
	return more
}

// continues reports whether a task does the same work between its runs as an earlier one of its name.
func (b boundTask) continues(earlier boundTask) bool {
	if b.flush == nil || b.task.Store != earlier.task.Store {
		return false
	}
	from, was := b.task.Config.Flush.From, earlier.task.Config.Flush.From
	return from.Type == was.Type && from.Key == was.Key
}

// release ends the work of flushes between their runs.
func (t *Term) release(flushes []boundTask) {
	t.captures.end(flushes)
	for _, b := range flushes {
		if err := b.task.pipeline.Release(); err != nil {
			t.Log.Warn("the work of a flush between its runs did not end", zap.String("job", b.job.Name), zap.Error(err))
		}
	}
}
