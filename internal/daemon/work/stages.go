package work

import (
	"context"
	"time"

	"go.uber.org/zap"

	"baton/internal/daemon/tasks"
	"baton/internal/doctor"
	"baton/internal/flush/source/staging"
)

// watchStages notes the keys beside which the jobs stage: a job may be removed one day and leave a stage there. The leader of the node's
// own lock then logs the stages that are left.
func (t *Term) watchStages(ctx context.Context, w Load) {
	const later = 5 * time.Second
	began, logged := time.Now(), map[staging.At]bool{}
	for noted := false; ctx.Err() == nil; _ = Rest(ctx, later) {
		if !noted {
			err := t.Stages.Note(ctx, tasks.StagedBy(Plain(w.Tasks)))
			if noted = err == nil; !noted {
				t.Log.Debug("it could not be noted where flushes stage", zap.Error(err))
			}
		}
		if noted && (w.Staged == nil || t.logStages(ctx, w.Staged, logged, time.Since(began))) {
			return
		}
	}
}

// lastRun is how long a replaced run may take to flush its stage before the log reports that no job does.
const lastRun = time.Minute

// logStages logs stages that no job flushes; false: there may be more. there may be more of them.
func (t *Term) logStages(ctx context.Context, configured map[staging.At]string, logged map[staging.At]bool, waited time.Duration) bool {
	left, err := t.Stages.Left(ctx, configured)
	running := map[string]bool{}
	for _, a := range t.Runner.Running() {
		running[a.Job] = true
	}
	over := err == nil
	var empty []staging.At
	for _, s := range left {
		switch {
		case s.Unknown && !logged[s.At]:
			logged[s.At] = true
			t.Log.Warn("changes may be staged in a store that is not configured any more", zap.String("store", s.Store),
				zap.String("key", s.Key), zap.String("job", s.Job), zap.String("remedy", doctor.UnknownStoreRemedy(s.At)))
		case s.Unknown:
		case s.Records == 0 && running[s.Job]: // it may stage once more
		case s.Records == 0:
			empty = append(empty, s.At)
		case running[s.Job] && waited < lastRun:
			over = false
		case !logged[s.At]:
			logged[s.At] = true
			t.Log.Warn("changes are staged that no job flushes", zap.String("store", s.Store), zap.String("key", s.Key),
				zap.String("job", s.Job), zap.Int64("changes", s.Records), zap.String("batch_id", s.ID),
				zap.String("remedy", doctor.StageRemedy(s.At)))
		}
	}
	_ = t.Stages.Forget(ctx, empty) // in the next term, if not now
	return over
}
