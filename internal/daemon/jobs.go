package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/flush"
	"baton/internal/job"
	"baton/internal/redisstore"
	"baton/internal/status"
)

// task is one configured job with the machinery behind it. It lives as long as
// the daemon; what a term needs is bound to it by bind.
type task struct {
	config   config.Job
	schedule job.Schedule
	counted  []flush.Source  // for the backlog, which needs no database
	pipeline *flush.Pipeline // nil for a command that only looks
	done     *tally          // by the run that goes on
}

// newTasks builds the jobs of the configuration. They connect to nothing yet. With
// nil dbs they can be looked at, but not run.
func newTasks(c config.Config, store *redisstore.Store, dbs databases, metrics *status.Metrics, log *zap.Logger) ([]task, error) {
	var tasks []task
	var problems []error
	for _, j := range c.Jobs {
		t, err := newTask(c, j, store, dbs, metrics, log)
		if err != nil {
			problems = append(problems, fmt.Errorf("job %q: %w", j.Name, err))
			continue
		}
		tasks = append(tasks, t)
	}
	return tasks, errors.Join(problems...)
}

func newTask(c config.Config, j config.Job, store *redisstore.Store, dbs databases, metrics *status.Metrics, log *zap.Logger) (task, error) {
	zone, err := time.LoadLocation(j.TimeZone)
	if err != nil {
		return task{}, err
	}
	schedule, err := job.ParseSchedule(j.Schedule, zone)
	if err != nil {
		return task{}, err
	}
	pipeline, err := flushConfig(j, store)
	if err != nil {
		return task{}, err
	}
	t := task{config: j, schedule: schedule, done: &tally{}}
	if t.counted, err = pipeline.NewSources(nil); err != nil || dbs == nil {
		return t, err
	}
	t.pipeline, err = newPipeline(pipeline, c.Node.ID, dbs[j.Flush.To.Database], t.done, metrics, log)
	return t, err
}

// backlog counts the changes that wait in Redis.
func (t task) backlog(ctx context.Context) (int64, error) {
	return flush.Backlog(ctx, t.counted)
}
