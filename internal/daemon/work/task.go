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

// Task is one configured job with the parts that do its work. It exists as long as the configuration contains this job unchanged.
// [Term.Load] binds a task to a term.
type Task struct {
	tasks.Task
	pipeline *flush.Pipeline // nil for a command
	sink     flush.Sink      // nil for a command
	done     *runTotals      // the results of the present run
	busy     *atomic.Int64   // number of runs that use the task
}

// New returns the tasks of the configuration's jobs. They do not connect yet.
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
	t = Task{done: &runTotals{}, busy: new(atomic.Int64)}
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

// Policy returns the job in the form that the runner needs, without the job's Run function. If a task changes, its policy has another
// version.
func (t Task) Policy() job.Job {
	p := t.Task.Policy()
	p.Version = fmt.Sprintf("%p", t.done)
	return p
}

// CountIn sets the counter that counts the task's runs from now on.
func (t *Task) CountIn(runs *atomic.Int64) { t.busy = runs }

// Begin counts a run of the task as in progress until the caller calls the function end.
func (t Task) Begin() (end func()) {
	t.busy.Add(1)
	return func() { t.busy.Add(-1) }
}

// Is reports whether the argument other is this task, and not a task that has replaced it.
func (t Task) Is(other Task) bool { return t.done == other.done }

// Plain returns the tasks in the form of package tasks, without the parts that do the work.
func Plain(list []Task) []tasks.Task {
	all := make([]tasks.Task, len(list))
	for i, t := range list {
		all[i] = t.Task
	}
	return all
}
