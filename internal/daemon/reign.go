package daemon

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"baton/internal/config"
	"baton/internal/elector"
	"baton/internal/job"
	"baton/internal/status"

	"go.uber.org/zap"
)

// reign is one term of a candidacy. The jobs of a term may be replaced while it lasts.
type reign struct {
	*candidacy
	term    *elector.Term
	changed chan struct{} // the workload has been replaced
	sampler *sampler
	watch   *jobWatch

	mu    sync.Mutex
	bound map[string]boundTask // by job
}

// boundTask is a task in one term.
type boundTask struct {
	task  task
	job   job.Job
	flush *flushJob // nil for a command
}

// lead does the work of one term: an elector.LeadFunc.
func (c *candidacy) lead(ctx context.Context, term *elector.Term) error {
	r := &reign{candidacy: c, term: term, changed: make(chan struct{}, 1), bound: map[string]boundTask{},
		sampler: &sampler{log: c.log, ledger: c.ledger, nodeID: term.NodeID(), epoch: term.Epoch()}, watch: newJobWatch()}
	work := c.begin(r)
	defer c.ended()
	ctx, cancel := context.WithCancelCause(ctx)
	follow := c.notes.begin(c.lockKey, term.Epoch(), c.ledger, c.election)
	var wg sync.WaitGroup
	wg.Go(func() { follow(ctx) })
	wg.Go(func() { forgetGone(ctx, c.election) })
	wg.Go(func() { c.first.look(ctx) })
	wg.Go(func() { r.accompany(ctx, func(a *elector.Abdication) { cancel(a) }) })
	err := c.runner.Run(ctx, job.Term{NodeID: term.NodeID(), Owner: term.Owner(), Epoch: term.Epoch()}, work)
	cancel(err) // an abdication came first, or is none
	wg.Wait()
	if abdication := new(elector.Abdication); errors.As(context.Cause(ctx), &abdication) {
		return abdication
	}
	return err
}

// load binds tasks to the term. Those that have not changed stay bound as they are:
// they know how far they have come.
func (r *reign) load(w *workload) job.Workload {
	r.mu.Lock()
	defer r.mu.Unlock()
	bound := map[string]boundTask{}
	jobs := make([]job.Job, len(w.tasks))
	for i, t := range w.tasks {
		b, ok := r.bound[t.config.Name]
		if !ok || b.task.done != t.done {
			b = r.bind(t, w.config.History)
		}
		bound[t.config.Name], jobs[i] = b, b.job
	}
	r.bound = bound
	return job.Workload{Jobs: jobs, MaxConcurrent: w.config.MaxConcurrentJobs}
}

func (r *reign) bind(t task, keep config.History) boundTask {
	b := boundTask{task: t, job: t.policy()}
	if t.config.IsCommand() {
		b.job.Run = r.command(t, keep)
		return b
	}
	b.flush = &flushJob{task: t, term: r.term, metrics: r.metrics, told: r.told, notes: r.notes, ledger: r.ledger}
	b.job.Run = b.flush.run
	return b
}

// update replaces the term's jobs.
func (r *reign) update(ctx context.Context, w *workload) {
	const soon = 10 * time.Millisecond
	work := r.load(w)
	for {
		err := r.runner.Update(ctx, work)
		if _, now := r.current(); err == nil || now != r || !errors.Is(err, job.ErrNotLeader) {
			break
		}
		if rest(ctx, soon) != nil { // the term has hardly begun, or is about to end
			break
		}
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// accompany does what goes on beside the jobs of a term until ctx ends, anew for each
// workload.
func (r *reign) accompany(ctx context.Context, abdicate func(*elector.Abdication)) {
	for ctx.Err() == nil {
		w, _ := r.current()
		tasks := r.tasks()
		during, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { gauges{r.ledger, r.runner, r.metrics, tasks, r.sampler, r.watch}.keep(during) })
		wg.Go(func() {
			if len(tasks) == 0 && len(r.runner.Running()) == 0 {
				return // there is nothing to order
			}
			takeOrders(during, r.log.Named("job"), r.ledger, r.runner, jobsOf(tasks), r.timing.HeartbeatInterval)
		})
		wg.Go(func() { pruneLedgers(during, r.log.Named("ledger"), w.databases) })
		wg.Go(func() {
			if abdication := r.resign.watch(during); abdication != nil {
				abdicate(abdication)
			}
		})
		select {
		case <-ctx.Done():
		case <-r.changed:
		}
		stop()
		wg.Wait()
	}
}

func (r *reign) tasks() []boundTask {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.bound))
}

func jobsOf(tasks []boundTask) []job.Job {
	jobs := make([]job.Job, len(tasks))
	for i, t := range tasks {
		jobs[i] = t.job
	}
	return jobs
}

// newRunner makes what starts the jobs. Its logger names the node itself.
func newRunner(c config.Config, ledger job.Ledger, logger *zap.Logger, metrics *status.Metrics, notes *notifications) *job.Runner {
	return job.NewRunner(ledger, newID, job.Config{
		Logger:        logger.Named("job"),
		FinishTimeout: finishTimeout(c.Election.Drain),
		OnStart:       func(r job.Run) { metrics.JobStarted(r.Job, time.Since(r.Slot)) },
		OnFinish: func(r job.Record) {
			metrics.JobFinished(r.Job, string(r.Trigger), string(r.State), r.Finished, r.Finished.Sub(r.Started))
			notes.finished(r)
		},
		OnMissed: func(m job.Missed) {
			metrics.JobMissed(m.Job, string(m.Reason), m.Count)
			notes.missed(m)
		},
	})
}

// forgetGone takes nodes off the list that have been gone for a day: hosts come
// and go, and nobody else clears up. What fails is done in the next term.
func forgetGone(ctx context.Context, election election) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if p, err := election.Picture(ctx, 0); err == nil {
		_ = election.Forget(ctx, p.Nodes, p.Now.Add(-forgottenAfter))
	}
}
