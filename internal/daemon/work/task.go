package work

import (
	"errors"
	"fmt"
	"sync/atomic"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/job"
)

// Task is one configured job with the machinery behind it. It lives as long as the configuration has the same job; [Term.Load] binds it
// to a term.
type Task struct {
	tasks.Task
	pipeline *flush.Pipeline // nil for a command
	sink     flush.Sink      // nil for a command
	done     *tally          // by the present run
	busy     *atomic.Int64   // runs that use it
}

// New builds the jobs of the configuration. They connect to nothing yet.
func New(c config.Config, stores site.Stores, dbs site.Databases, to Reports) ([]Task, error) {
	var made []Task
	var problems []error
	for _, j := range c.Jobs {
		t, err := newTask(c, j, stores, dbs, to)
		if err != nil {
			problems = append(problems, fmt.Errorf("job %q: %w", j.Name, err))
			continue
		}
		made = append(made, t)
	}
	return made, errors.Join(problems...)
}

func newTask(c config.Config, j config.Job, stores site.Stores, dbs site.Databases, to Reports) (t Task, err error) {
	t = Task{done: &tally{}, busy: new(atomic.Int64)}
	if t.Task, err = tasks.Describe(j); err != nil {
		return t, err
	}
	pipeline, err := t.Open(stores)
	if err != nil || j.IsCommand() {
		return t, err
	}
	pipeline.Lease = c.Election.TTL
	t.sink = dbs[j.Flush.To.Database]
	t.pipeline, err = newPipeline(pipeline, c.Node.ID, t.sink, t.done, to, traceTarget(to.Traces, c, j))
	return t, err
}

// Policy is the runner's job without Run: a changed task has another version.
func (t Task) Policy() job.Job {
	p := t.Task.Policy()
	p.Version = fmt.Sprintf("%p", t.done)
	return p
}

// CountIn makes runs count the task's runs from now on.
func (t *Task) CountIn(runs *atomic.Int64) { t.busy = runs }

// Begin counts a run of the task until it ends.
func (t Task) Begin() (end func()) {
	t.busy.Add(1)
	return func() { t.busy.Add(-1) }
}

// Is reports whether a task is the same one, and not a replacement of it.
func (t Task) Is(other Task) bool { return t.done == other.done }

// Plain are the tasks without their machinery.
func Plain(list []Task) []tasks.Task {
	all := make([]tasks.Task, len(list))
	for i, t := range list {
		all[i] = t.Task
	}
	return all
}
