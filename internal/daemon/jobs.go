package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/config"
	"baton/internal/elector"
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
}

// newTasks builds the jobs of the configuration. They connect to nothing yet. With
// nil dbs they can be looked at, but not run.
func newTasks(c config.Config, store *redisstore.Store, dbs databases, metrics *status.Metrics) ([]task, error) {
	var tasks []task
	var problems []error
	for _, j := range c.Jobs {
		t, err := newTask(c, j, store, dbs, metrics)
		if err != nil {
			problems = append(problems, fmt.Errorf("job %q: %w", j.Name, err))
			continue
		}
		tasks = append(tasks, t)
	}
	return tasks, errors.Join(problems...)
}

func newTask(c config.Config, j config.Job, store *redisstore.Store, dbs databases, metrics *status.Metrics) (task, error) {
	zone, err := time.LoadLocation(j.TimeZone)
	if err != nil {
		return task{}, err
	}
	schedule, err := job.ParseSchedule(j.Schedule, zone)
	if err != nil {
		return task{}, err
	}
	sources, inputs, err := flushSources(j, store)
	if err != nil {
		return task{}, err
	}
	t := task{config: j, schedule: schedule}
	if t.counted, err = sources(nil); err != nil || dbs == nil {
		return t, err
	}
	spec := flush.MappingSpec{Table: j.Flush.To.Table, Key: j.Flush.To.Key}
	for name, col := range j.Flush.Columns {
		if spec.Columns == nil {
			spec.Columns = map[string]flush.ColumnSpec{}
		}
		spec.Columns[name] = flush.ColumnSpec{From: col.From, Op: col.Op, Type: col.Type, Format: col.Format, Missing: col.Missing, Empty: col.Empty}
	}
	t.pipeline, err = flush.New(flush.Config{
		Job: j.Name, NodeID: c.Node.ID, Sink: dbs[j.Flush.To.Database], NewSources: sources,
		Mapping: spec, Inputs: inputs, OnMissing: flush.OnMissing(j.Flush.From.OnMissing), NewID: newID,
		OnBatch: func(b flush.BatchStats) {
			metrics.FlushRows(j.Name, "written", b.Rows)
			metrics.FlushRows(j.Name, "dead", b.Dead)
			metrics.FlushBatch(j.Name, b.Took)
		},
	})
	return t, err
}

// lag is the greatest age that one of backlog waiting changes can have, if all
// changes before fresh have been flushed.
func lag(backlog int64, fresh, now time.Time) time.Duration {
	if backlog == 0 || fresh.IsZero() {
		return 0
	}
	return max(now.Sub(fresh), 0)
}

// backlog counts the changes that wait in Redis.
func (t task) backlog(ctx context.Context) (int64, error) {
	return flush.Backlog(ctx, t.counted)
}

// flushSources tells how the sources of a flush are made, once the inputs that its
// mapping wants are known, and what they can deliver.
func flushSources(j config.Job, store *redisstore.Store) (func([]string) ([]flush.Source, error), flush.Inputs, error) {
	from := j.Flush.From
	if from.Type == config.Hashes {
		row, err := flush.ParseRowKey(from.Key)
		build := func(inputs []string) ([]flush.Source, error) {
			s, err := redisstore.NewHashes(store, redisstore.HashesOptions{Job: j.Name, Key: from.Key, Changed: from.Changed, Inputs: inputs})
			return []flush.Source{s}, err
		}
		return build, flush.Inputs{Names: []string{row.Name}, Fields: true}, err
	}
	keys, err := flush.ExpandKey(from.Key)
	build := func(inputs []string) ([]flush.Source, error) {
		var sources []flush.Source
		for _, key := range keys {
			s, err := redisstore.NewCounters(store, redisstore.CountersOptions{Job: j.Name, Key: key, Inputs: inputs})
			if err != nil {
				return nil, err
			}
			sources = append(sources, s)
		}
		return sources, nil
	}
	return build, flush.Inputs{Names: []string{flush.InputField, flush.InputValue}, Ledger: true}, err
}

// bind makes the job of one term: its work flushes under the term's fencing token.
func (t task) bind(term *elector.Term, metrics *status.Metrics) job.Job {
	name := t.config.Name
	fresh := time.Now() // what waits is not older than this, as far as this term knows
	return job.Job{
		Name: name, Schedule: t.schedule, Timeout: t.config.Timeout,
		CatchUp: job.CatchUp(t.config.CatchUp), StartingDeadline: t.config.StartingDeadline,
		Run: func(ctx context.Context, _ job.Run) (job.Result, error) {
			began := time.Now()
			res, err := t.pipeline.Run(ctx, term)
			if err == nil {
				fresh = began // everything older has been flushed
			}
			metrics.Epoch(term.Epoch()) // taking over a fence may have raised it
			metrics.JobNext(name, t.schedule.Next(time.Now()))
			if backlog, err := t.backlog(ctx); err == nil {
				metrics.FlushBacklog(name, backlog)
				metrics.FlushLag(name, lag(backlog, fresh, time.Now()))
			}
			if errors.Is(err, flush.ErrFenced) {
				metrics.FlushFenced(name)
				err = fmt.Errorf("%w: %w", job.ErrNotLeader, err)
			}
			return job.Result{Rows: res.Rows, Dead: res.Dead}, err
		},
	}
}
