package work

import (
	"context"
	"time"

	"go.uber.org/zap"

	"baton/internal/daemon/tasks"
	"baton/internal/doctor"
	"baton/internal/flush/source/staging"
)

// watchStages records the keys for which the jobs stage changes. It does so because a job may be removed one day, while a stage with its
// changes is left. The leader of the node's own lock then logs the stages that are left.
func (t *Term) watchStages(ctx context.Context, w Load) {
	const later = 5 * time.Second
	began, logged := time.Now(), map[staging.Location]bool{}
	for noted := false; ctx.Err() == nil; _ = Rest(ctx, later) {
		if !noted {
			err := t.Stages.Note(ctx, tasks.StagedBy(Plain(w.Tasks)))
			if noted = err == nil; !noted {
				t.Log.Debug("cannot record which keys the flushes stage", zap.Error(err))
			}
		}
		if noted && (w.Staged == nil || t.logStages(ctx, w.Staged, logged, time.Since(began))) {
			return
		}
	}
}

// lastRun is how long the last run of a replaced job may take to flush its stage. Only after this time the log reports that no job flushes
// this stage.
const lastRun = time.Minute

// logStages logs the stages that no job flushes. It returns false if it must be called again, because there may be more such stages.
func (t *Term) logStages(
	ctx context.Context, configured map[staging.Location]string, logged map[staging.Location]bool, waited time.Duration,
) bool {
	left, err := t.Stages.Left(ctx, configured)
	running := map[string]bool{}
	for _, a := range t.Runner.Running() {
		running[a.Job] = true
	}
	over := err == nil
	var empty []staging.LeftStage
	for _, s := range left {
		switch {
		case s.Unknown && !logged[s.Location]:
			logged[s.Location] = true
			t.Log.Warn("changes may be staged in a store that is not configured any more", zap.String("store", s.Store),
				zap.String("key", s.Key), zap.String("job", s.Job), zap.String("remedy", doctor.UnknownStoreRemedy(s.Location)))
		case s.Unknown:
		case s.Records == 0 && running[s.Job]: // the running job may stage once more
		case s.Records == 0:
			empty = append(empty, s)
		case running[s.Job] && waited < lastRun:
			over = false
		case !logged[s.Location]:
			logged[s.Location] = true
			t.Log.Warn("changes are staged that no job flushes", zap.String("store", s.Store), zap.String("key", s.Key),
				zap.String("job", s.Job), zap.Int64("changes", s.Records), zap.String("batch_id", s.ID),
				zap.String("remedy", doctor.StageRemedy(s.Location)))
		}
	}
	if t.term.Trusted() { // otherwise the next leader may have other jobs, and has noted their places before Left read the list
		_ = t.Stages.Forget(ctx, empty) // if this fails, the next term removes them
	}
	return over
}
