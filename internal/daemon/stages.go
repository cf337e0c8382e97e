package daemon

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/doctor"
	"baton/internal/flush/source/staging"
	"baton/internal/redislock"
	"baton/internal/status"
)

// LeftStage is what a flush has staged beside a key that no job flushes any more.
type LeftStage = status.LeftStage

// stagedBy are the keys beside which tasks stage, and the job of each.
func stagedBy(tasks []tasks.Task) map[string]string {
	jobs := map[string]string{}
	for _, t := range tasks {
		for _, key := range staging.StagedKeys(t.Sources) {
			jobs[key] = t.Config.Name
		}
	}
	return jobs
}

// leftStages are the stages with something in them that none of those tasks flushes, by key, as
// far as Redis tells.
func leftStages(ctx context.Context, stages *staging.Stages, tasks []tasks.Task) ([]LeftStage, error) {
	left := []LeftStage{}
	found, err := stages.Left(ctx, stagedBy(tasks))
	for _, s := range found {
		if s.Records > 0 {
			left = append(left, LeftStage{Key: s.Key, Job: s.Job, BatchID: s.ID, Records: s.Records})
		}
	}
	return left, err
}

// watchStages notes beside which keys the jobs stage, which may go one day and leave a stage there.
// The leader of the node's own lock then tells of those that are left.
func (r *reign) watchStages(ctx context.Context, w *workload) {
	const later = 5 * time.Second
	began, told := time.Now(), map[string]bool{}
	for noted := false; ctx.Err() == nil; _ = rest(ctx, later) {
		if !noted {
			err := r.registry.NoteStages(ctx, stagedBy(plain(w.tasks)))
			if noted = err == nil; !noted {
				r.log.Debug("it could not be noted where flushes stage", zap.Error(err))
			}
		}
		if noted && (w.staged == nil || r.tellStages(ctx, w.staged, told, time.Since(began))) {
			return
		}
	}
}

// lastRun is how long a run that was replaced may take to flush what it has staged, before the
// log tells that no job does.
const lastRun = time.Minute

// tellStages tells the log of stages that no job flushes; false: there may be more of them.
func (r *reign) tellStages(ctx context.Context, configured map[string]string, told map[string]bool, waited time.Duration) bool {
	left, err := r.registry.Left(ctx, configured)
	running := map[string]bool{}
	for _, a := range r.runner.Running() {
		running[a.Job] = true
	}
	over := err == nil
	var empty []string
	for _, s := range left {
		switch {
		case s.Records == 0 && running[s.Job]: // it may stage once more
		case s.Records == 0:
			empty = append(empty, s.Key)
		case running[s.Job] && waited < lastRun:
			over = false
		case !told[s.Key]:
			told[s.Key] = true
			r.log.Warn("changes are staged that no job flushes", zap.String("key", s.Key), zap.String("job", s.Job),
				zap.Int64("changes", s.Records), zap.String("batch_id", s.ID), zap.String("remedy", doctor.StageRemedy(s.Key)))
		}
	}
	_ = r.registry.ForgetStages(ctx, empty) // in the next term, if not now
	return over
}

// LeftStages are the stages that no job of the configuration flushes, by key. What one server of
// a Cluster answers is there also if another one fails.
func (r *Remote) LeftStages(ctx context.Context) ([]LeftStage, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	all, err := tasks.All(r.config, r.store)
	if err != nil {
		return nil, err
	}
	return leftStages(ctx, staging.NewStages(r.store, r.ledger), all)
}

// DropStage removes a stage for good: never one that a job of this configuration or of a node's
// that is there may flush, nor another one than was looked at.
func (r *Remote) DropStage(ctx context.Context, s LeftStage) error {
	all, err := tasks.All(r.config, r.store)
	if err != nil {
		return err
	}
	if job, used := stagedBy(all)[s.Key]; used {
		return fmt.Errorf("job %q flushes %q: what is staged there is not dropped", job, s.Key)
	}
	p, err := r.picture(ctx)
	if err != nil {
		return err
	}
	own := config.Hash(r.config)
	for _, n := range p.Nodes {
		if p.Now.Sub(n.Seen()) <= redislock.GoneAfter && n.ConfigHash != own {
			return fmt.Errorf("node %q runs with other jobs than this configuration has, and one of them may flush %q: give all nodes the same configuration, baton reload there, and drop it then", n.ID, s.Key)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	return staging.NewStages(r.store, r.ledger).Drop(ctx, staging.LeftStage{Key: s.Key, Job: s.Job, ID: s.BatchID, Records: s.Records})
}
