package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/job"
	"baton/internal/job/plan"
	"baton/internal/job/schedule"
	"baton/internal/redisconn"
)

// task is one configured job with the machinery behind it. It lives for as long as the
// configuration has the job like that; what a term needs is bound to it by bind.
type task struct {
	config   config.Job
	schedule schedule.Schedule
	counted  []flush.Source  // for the backlog, which needs no database
	pipeline *flush.Pipeline // nil for a command, and where tasks are only looked at
	done     *tally          // by the run that goes on
	busy     *atomic.Int64   // runs that use it
}

// newTasks builds the jobs of the configuration. They connect to nothing yet. With
// nil dbs they can be looked at, but not run.
func newTasks(c config.Config, store *redisconn.Store, dbs site.Databases, to reports) ([]task, error) {
	var tasks []task
	var problems []error
	for _, j := range c.Jobs {
		t, err := newTask(c, j, store, dbs, to)
		if err != nil {
			problems = append(problems, fmt.Errorf("job %q: %w", j.Name, err))
			continue
		}
		tasks = append(tasks, t)
	}
	return tasks, errors.Join(problems...)
}

func newTask(c config.Config, j config.Job, store *redisconn.Store, dbs site.Databases, to reports) (task, error) {
	zone, err := time.LoadLocation(j.TimeZone)
	if err != nil {
		return task{}, err
	}
	slots, err := schedule.Parse(j.Schedule, zone)
	if err != nil {
		return task{}, err
	}
	t := task{config: j, schedule: slots, done: &tally{}, busy: new(atomic.Int64)}
	if j.IsCommand() {
		return t, nil
	}
	pipeline, err := tasks.Flush(j, store)
	if err != nil {
		return task{}, err
	}
	if t.counted, err = pipeline.NewSources(nil); err != nil || dbs == nil {
		return t, err
	}
	pipeline.Lease = c.Election.TTL
	t.pipeline, err = newPipeline(pipeline, c.Node.ID, dbs[j.Flush.To.Database], t.done, to)
	return t, err
}

// backlog counts the changes that wait in Redis.
func (t task) backlog(ctx context.Context) (int64, error) {
	return flush.Backlog(ctx, t.counted)
}

// target is what the job writes to, or the program that it runs, for people. Arguments
// may be secrets, and are nobody's business.
func (t task) target() string {
	switch j := t.config; {
	case j.IsCommand() && j.Shell:
		return "a shell command"
	case j.IsCommand():
		return filepath.Base(j.Command[0])
	default:
		return j.Flush.To.Database + "." + j.Flush.To.Table
	}
}

// policy is what the runner is told of a job, but for its work.
func (t task) policy() job.Job {
	p := t.config.Policy
	return job.Job{
		Name: t.config.Name, Schedule: t.schedule, Timeout: p.Timeout,
		CatchUp: plan.CatchUp(p.CatchUp), StartingDeadline: p.StartingDeadline, Overlap: plan.Overlap(p.Overlap), MaxOverlap: p.MaxOverlap,
		Retry:     plan.Retry{Limit: p.Retry.Limit, Delay: p.Retry.Delay, MaxDelay: p.Retry.MaxDelay},
		EndsFirst: t.config.IsCommand(), Spawns: t.config.IsCommand(), OnLost: plan.OnLost(p.OnLost), Jitter: p.Jitter,
		Version: fmt.Sprintf("%p", t.done), // a task that has changed is another one
	}
}

// next is when the job is due after a time: a while after its slots, if it has a jitter.
func (t task) next(after time.Time) time.Time {
	offset := t.policy().Offset()
	slot := t.schedule.Next(after.Add(-offset))
	if slot.IsZero() {
		return slot
	}
	return slot.Add(offset)
}

func names(tasks []task) []string {
	list := make([]string, len(tasks))
	for i, t := range tasks {
		list[i] = t.config.Name
	}
	return list
}

// lockKeys are the locks that this node contends for: its own, and those of jobs that
// have another one, as the configuration has them.
func lockKeys(c config.Config) []string {
	keys := []string{c.Election.LockKey}
	for _, j := range c.Jobs {
		if j.Lock != "" && !slices.Contains(keys, j.Lock) {
			keys = append(keys, j.Lock)
		}
	}
	return keys
}

// tasksOf are those under one lock. They take no more memory than they must.
func tasksOf(tasks []task, lockKey string) (list []task) {
	for _, t := range tasks {
		if t.config.Lock == lockKey {
			list = append(list, t)
		}
	}
	return list
}
