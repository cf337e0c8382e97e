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

// Task is a job of the configuration, without the parts that need a term.
type Task struct {
	Config   config.Job
	Shown    string // Config as YAML, without any secret
	Schedule schedule.Schedule
	Sources  []flush.Source   // the sources of a flush, for its backlog; nil: a command, or not opened
	Store    *redisconn.Store // where they are; nil likewise
	IdleKeys []string         // while none of them exists a flush has nothing to do; nil: keys do not show it

	pending func(ctx context.Context) (bool, error) // see flush.Config; nil: not known
}

// Describe returns the task of a job without opening its source.
func Describe(j config.Job) (Task, error) {
	slots, err := schedule.ParseIn(j.Schedule, j.TimeZone)
	return Task{Config: j, Shown: config.ShowJob(j), Schedule: slots}, err
}

// All opens every job of the configuration, so that its sources can be read. It connects to nothing yet.
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

// Open makes the sources of a flush in the store that has them, and returns it as [Flush] does; of a command
// there is nothing to open. It connects to nothing yet.
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

// Backlog counts the changes that wait in Redis. Most of the time there are none, which one
// question answers for all shards.
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

// IsCapture reports whether it follows the replication stream of its store, which is open.
func (t Task) IsCapture() bool { return t.Store != nil && isCapture(t.Config) }

func isCapture(j config.Job) bool { return !j.IsCommand() && j.Flush.From.Type == spec.Capture }

// CaptureProgress is how far it has followed the stream, if this node does. With masters it asks them.
func (t Task) CaptureProgress(ctx context.Context, masters bool) (capture.Progress, bool) {
	return capture.ProgressOf(ctx, t.Store, t.Config.Name, t.Config.Flush.From.Key, masters)
}

// Countable reports whether changes wait in a place of their own.
func (t Task) Countable() bool {
	return slices.ContainsFunc(t.Sources, func(s flush.Source) bool {
		_, counts := s.(flush.Counted)
		return counts
	})
}

// Lag is the greatest age that one of backlog waiting changes can have, if all changes
// before fresh have been flushed. Where changes do not wait in a place of their own,
// they cannot be counted: then it is how old the table's content may be.
func (t Task) Lag(backlog int64, fresh, now time.Time) time.Duration {
	if backlog == 0 && t.Countable() || fresh.IsZero() {
		return 0
	}
	return max(now.Sub(fresh), 0)
}

// Target names, for people, the table that the job writes to, or the program that it runs. It
// leaves out arguments, which may be secrets.
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

// Policy returns the runner's job without Run.
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

// Next is when the job is due after a time: a while after its slots, if it has a jitter.
func (t Task) Next(after time.Time) time.Time {
	offset := t.Policy().Offset()
	slot := t.Schedule.Next(after.Add(-offset))
	if slot.IsZero() {
		return slot
	}
	return slot.Add(offset)
}

// Job is the job as it is configured.
func (t Task) Job() config.Job { return t.Config }

// configured is a [Task], and whatever has one embedded.
type configured interface{ Job() config.Job }

// Names are the tasks' jobs'.
func Names[T configured](list []T) []string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.Job().Name
	}
	return names
}

// Under are the tasks under one lock. They take no more memory than they must.
func Under[T configured](list []T, lockKey string) (some []T) {
	for _, t := range list {
		if t.Job().Lock == lockKey {
			some = append(some, t)
		}
	}
	return some
}

// StagedBy are the keys beside which tasks stage, and the job of each.
func StagedBy(list []Task) map[staging.At]string {
	jobs := map[staging.At]string{}
	for _, t := range list {
		for _, key := range staging.StagedKeys(t.Sources) {
			jobs[staging.At{Store: t.Config.Flush.From.Store, Key: key}] = t.Config.Name
		}
	}
	return jobs
}

// ByStore does something with the tasks of each store, with all stores at once: one that is away
// holds up no other.
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
