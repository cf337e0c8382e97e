package work

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"
)

const (
	// lull is how long a removed or replaced flush must have had no run before it is released. The pause is needed because a run may have
	// claimed its slot before it begins.
	lull = 5 * time.Second
	// leftEvery is the interval between two checks for such flushes.
	leftEvery = time.Second
)

// leftTask is a flush that a reload has removed or replaced. Until it is released, the flush continues its background work between runs.
type leftTask struct {
	boundTask
	idle time.Time // the time since which the flush has had no run
}

// leave records the bound flushes that are missing from the argument bound, so that they are released later. The caller holds t.mu.
func (t *Term) leave(bound map[string]boundTask) {
	for name, b := range t.bound {
		if b.flush != nil && !bound[name].task.Is(b.task) {
			t.left = append(t.left, &leftTask{b, time.Now()})
		}
	}
}

// releaseLeft releases the flushes that the method leave has recorded, when their runs have ended. It returns when all of them are released
// or ctx ends.
func (t *Term) releaseLeft(ctx context.Context) {
	for t.releaseIdle(time.Now()) && Rest(ctx, leftEvery) == nil {
	}
}

// releaseIdle releases the recorded flushes that have had no run for the time lull. It returns false if no recorded flush is left.
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

// continues reports whether this task does the same background work between its runs as the earlier task with the same name.
func (b boundTask) continues(earlier boundTask) bool {
	if b.flush == nil || b.task.Store != earlier.task.Store {
		return false
	}
	from, was := b.task.Config.Flush.From, earlier.task.Config.Flush.From
	return from.Type == was.Type && from.Key == was.Key
}

// release ends the background work that flushes do between their runs.
func (t *Term) release(flushes []boundTask) {
	t.captures.end(flushes)
	for _, b := range flushes {
		if err := b.task.pipeline.Release(); err != nil {
			t.Log.Warn("cannot end the background work of a flush", zap.String("job", b.job.Name), zap.Error(err))
		}
	}
}
