package tasks

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/flush"
	"baton/internal/flush/source/capture"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/source/staging"
	"baton/internal/job"
	"baton/internal/job/plan"
	"baton/internal/job/schedule"
	"baton/internal/redisconn"
)

// Task is a job of the configuration, without the parts that exist only during a term.
type Task struct {
	Config   config.Job
	Shown    string // Config as YAML, without any secret
	Schedule schedule.Schedule
	Sources  []flush.Source   // the sources of a flush, for its backlog; nil: a command, or not opened
	Store    *redisconn.Store // the store of the sources; nil like Sources
	IdleKeys []string         // while none of these keys exists a flush has nothing to do; nil: the keys do not show this

	pending func(ctx context.Context) (bool, error) // see flush.Config; nil: not known
}

// Describe returns the task of a job without opening its source.
func Describe(j config.Job) (Task, error) {
	slots, err := schedule.ParseIn(j.Schedule, j.TimeZone)
	return Task{Config: j, Shown: config.ShowJob(j), Schedule: slots}, err
}

// All opens all jobs of the configuration, so that their sources can be read. It does not connect yet.
func All(c config.Config, stores site.Stores) ([]Task, error) {
	list := make([]Task, len(c.Jobs))
	for i, j := range c.Jobs {
		t, err := Describe(j)
		if err == nil {
			_, err = t.Open(stores)
		}
		if err != nil {
			return nil, fmt.Errorf("job %q: %w", j.Name, err)
		}
		list[i] = t
	}
	return list, nil
}

// Open makes the sources of a flush job in the job's store, and returns the same configuration as [Flush]. For a command job it does
// nothing. It does not connect yet.
func (t *Task) Open(stores site.Stores) (flush.Config, error) {
	if t.Config.IsCommand() {
		return flush.Config{}, nil
	}
	t.Store = stores.Of(t.Config)
	c, err := Flush(t.Config, t.Store)
	if err != nil {
		return c, err
	}
	t.pending = c.Pending
	if t.Sources, err = c.NewSources(nil); err != nil {
		return c, err
	}
	from, err := Source(t.Config)
	t.IdleKeys = from.IdleKeys()
	return c, err
}

// Backlog counts the changes that wait in Redis. Most of the time no changes wait. A single request finds this out for all shards of the
// job.
func (t Task) Backlog(ctx context.Context) (int64, error) {
	if !t.Countable() {
		return 0, &flush.UncountedError{Why: "every run reads all of it, and only a run finds what has changed", ByRun: true}
	}
	if t.pending != nil {
		if some, err := t.pending(ctx); err == nil && !some {
			return 0, nil
		}
	}
	return flush.Backlog(ctx, t.Sources)
}

// IsCapture reports whether the task is a capture, and its store is open. A capture follows the replication stream of its store.
func (t Task) IsCapture() bool { return t.Store != nil && isCapture(t.Config) }

func isCapture(j config.Job) bool { return !j.IsCommand() && j.Flush.From.Type == spec.Capture }

// CaptureProgress returns how far the task has read its store's replication stream. The result is false if this node does not follow that
// stream. If masters is true, CaptureProgress also asks the masters how long the stream is.
func (t Task) CaptureProgress(ctx context.Context, masters bool) (capture.Progress, bool) {
	return capture.ProgressOf(ctx, t.Store, t.Config.Name, t.Config.Flush.From.Key, masters)
}

// Countable reports whether the source keeps waiting changes separately, so that the changes can be counted.
func (t Task) Countable() bool {
	return slices.ContainsFunc(t.Sources, func(s flush.Source) bool {
		_, counts := s.(flush.Counted)
		return counts
	})
}

// Lag returns the maximum age of the waiting changes. It assumes that all changes from before the time in the argument fresh have been
// flushed. The argument backlog is the number of waiting changes. If the source does not keep waiting changes separately, they cannot be
// counted. In this case Lag returns the maximum age of the table's content.
func (t Task) Lag(backlog int64, fresh, now time.Time) time.Duration {
	if backlog == 0 && t.Countable() || fresh.IsZero() {
		return 0
	}
	return max(now.Sub(fresh), 0)
}

// Target returns a readable name of the table that the job writes, or of the program that the job runs. It leaves out the program's
// arguments, which may be secrets.
func (t Task) Target() string {
	switch j := t.Config; {
	case j.IsCommand() && j.Shell:
		return "a shell command"
	case j.IsCommand():
		return filepath.Base(j.Command[0])
	default:
		return j.Flush.To.Database + "." + j.Flush.To.Table
	}
}

// Policy returns the job in the form that the runner needs, without the job's Run function.
func (t Task) Policy() job.Job {
	p := t.Config.Policy
	return job.Job{
		Name: t.Config.Name, Schedule: t.Schedule, Timeout: p.Timeout,
		CatchUp: plan.CatchUp(p.CatchUp), StartingDeadline: p.StartingDeadline, Overlap: plan.Overlap(p.Overlap), MaxOverlap: p.MaxOverlap,
		Retry:     plan.Retry{Limit: p.Retry.Limit, Delay: p.Retry.Delay, MaxDelay: p.Retry.MaxDelay},
		EndsFirst: t.Config.IsCommand(), Spawns: t.Config.IsCommand(), OnLost: plan.OnLost(p.OnLost), Jitter: p.Jitter,
		MayIdle: len(t.IdleKeys) > 0 && !schedule.IsAlways(t.Schedule), IdleGroup: t.Config.Flush.From.Store,
	}
}

// Next returns when the job is next due, counted from the time in the argument after. A job with a jitter is due some time after its slots.
func (t Task) Next(after time.Time) time.Time {
	offset := t.Policy().Offset()
	slot := t.Schedule.Next(after.Add(-offset))
	if slot.IsZero() {
		return slot
	}
	return slot.Add(offset)
}

// Job returns the job's configuration.
func (t Task) Job() config.Job { return t.Config }

// configured is implemented by [Task], and by types that embed a Task.
type configured interface{ Job() config.Job }

// Names returns the names of the tasks' jobs.
func Names[T configured](list []T) []string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.Job().Name
	}
	return names
}

// Under returns the tasks under one lock. The result uses as little memory as possible.
func Under[T configured](list []T, lockKey string) (some []T) {
	for _, t := range list {
		if t.Job().Lock == lockKey {
			some = append(some, t)
		}
	}
	return some
}

// StagedBy returns the keys for which the tasks stage changes, and the name of the job for each key. The stage of a key is a second key
// beside it, with the changes that are being flushed.
func StagedBy(list []Task) map[staging.Location]string {
	jobs := map[staging.Location]string{}
	for _, t := range list {
		for _, key := range staging.StagedKeys(t.Sources) {
			jobs[staging.Location{Store: t.Config.Flush.From.Store, Key: key}] = t.Config.Name
		}
	}
	return jobs
}

// ByStore calls the function do once for the tasks of each store. The calls run at the same time, so that a store that is unavailable does
// not delay the other stores.
func ByStore[T any](list []T, storeOf func(T) *redisconn.Store, do func(some []T)) {
	groups := map[*redisconn.Store][]T{}
	for _, t := range list {
		groups[storeOf(t)] = append(groups[storeOf(t)], t)
	}
	var wg sync.WaitGroup
	for _, some := range groups {
		wg.Go(func() { do(some) })
	}
	wg.Wait()
}
