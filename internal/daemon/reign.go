package daemon

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"baton/internal/alert"
	"baton/internal/config"
	"baton/internal/daemon/outage"
	"baton/internal/daemon/site"
	"baton/internal/elector"
	"baton/internal/job"
	"baton/internal/redislock"
	"baton/internal/status"

	"go.uber.org/zap"
)

// reign is one term of a candidacy. The jobs of a term may be replaced while it lasts.
type reign struct {
	*candidacy
	term    *elector.Term
	changed chan struct{} // the workload has been replaced
	sampler *sampler

	mu    sync.Mutex
	bound map[string]boundTask // by job
}

// boundTask is a task in one term.
type boundTask struct {
	task  task
	job   job.Job
	flush *flushJob // nil for a command
}

// firstWork is how long a term is for its jobs and for orders: what else accompanies them would
// take the processor, and the pool's connections, from those that are due.
const firstWork = 250 * time.Millisecond

// longestBeginning is for how long a term that begins keeps others from it.
const longestBeginning = time.Second

// after does something after a while, unless ctx ends before.
func after(ctx context.Context, d time.Duration, do func()) func() {
	return func() {
		if rest(ctx, d) == nil {
			do()
		}
	}
}

// lead does the work of one term: an elector.LeadFunc.
func (c *candidacy) lead(ctx context.Context, term *elector.Term) error {
	if c.turns.Take(ctx, nil, term.Overdue) != nil { // and waits for its own renewal, if that is overdue
		return nil
	}
	r := &reign{candidacy: c, term: term, changed: make(chan struct{}, 1), bound: map[string]boundTask{},
		sampler: &sampler{log: c.log, ledger: c.ledger, nodeID: term.NodeID(), epoch: term.Epoch()}}
	work := c.begin(r)
	defer c.ended()
	elected := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(elected))
	follow := c.notes.Begin(c.lockKey, term.Epoch(), c.ledger, c.election)
	var wg sync.WaitGroup
	ended := make(chan struct{})
	forget := context.AfterFunc(elected, func() {
		defer close(ended)
		if ctx.Err() == nil { // else an abdication came first
			r.endCommands(elected)
		}
		cancel(context.Cause(elected))
	})
	wg.Go(func() { follow(ctx) })
	wg.Go(after(ctx, firstWork, func() { forgetGone(ctx, c.election) }))
	wg.Go(after(ctx, firstWork, func() { c.first.look(ctx) }))
	wg.Go(func() { r.accompany(ctx, func(a *elector.Abdication) { cancel(a) }) })
	wg.Go(func() {
		defer c.turns.Leave()
		ctx, cancel := context.WithTimeout(ctx, longestBeginning)
		defer cancel()
		_, _ = c.ledger.Now(ctx) // is answered when processor and redis have had time for this term
	})
	c.clock.settled(ctx)
	err := c.runner.Run(ctx, c.termOf(term), work)
	cancel(err) // an abdication came first, or is none
	if !forget() {
		<-ended
	}
	wg.Wait()
	if abdication := new(elector.Abdication); errors.As(context.Cause(ctx), &abdication) {
		return abdication
	}
	return err
}

// termOf is a term as jobs know it.
func (c *candidacy) termOf(t *elector.Term) job.Term {
	told := job.Term{NodeID: t.NodeID(), Owner: t.Owner(), Epoch: t.Epoch()}
	if free := t.FreeFor(); free > 0 {
		told.FreeSince = c.clock.now().Add(-free)
	}
	return told
}

// endCommands waits, where the lead is given up by order, for the commands to end: each has
// its whole grace, and meanwhile flushes go on, so that what is not flushed at the handover
// has waited no longer than the drain. A term that is over waits for nothing.
func (r *reign) endCommands(elected context.Context) {
	why := context.Cause(elected)
	if !errors.Is(why, elector.ErrSteppedDown) && !errors.Is(why, elector.ErrShuttingDown) {
		return
	}
	if waited := r.commandsThatRun(); len(waited) > 0 {
		r.waitsFor("the end of " + strings.Join(waited, ", "))
		defer r.waitsFor("")
	}
	trusted, stop := context.WithCancel(context.WithoutCancel(elected))
	defer stop()
	go func() {
		select {
		case <-r.term.Closed():
			stop()
		case <-trusted.Done():
		}
	}()
	_ = r.runner.EndFirst(trusted, why) // no term, no commands; a lease that is gone ends all
}

// commandsThatRun are the names of the jobs whose commands go on.
func (r *reign) commandsThatRun() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var jobs []string
	for _, a := range r.runner.Running() {
		if b, ok := r.bound[a.Job]; ok && b.flush == nil && !slices.Contains(jobs, a.Job) {
			jobs = append(jobs, a.Job)
		}
	}
	return jobs
}

// load binds tasks to the term. Those that have not changed stay bound as they are:
// they know how far they have come.
func (r *reign) load(w *workload) job.Workload {
	r.mu.Lock()
	defer r.mu.Unlock()
	bound := map[string]boundTask{}
	jobs := make([]job.Job, len(w.tasks))
	for i, t := range w.tasks {
		b, ok := r.bound[t.Config.Name]
		if !ok || b.task.done != t.done {
			b = r.bind(t, w.config.History)
		}
		bound[t.Config.Name], jobs[i] = b, b.job
	}
	r.bound = bound
	return job.Workload{Jobs: jobs, MaxConcurrent: w.config.MaxConcurrentJobs, Idle: r.idle}
}

func (r *reign) bind(t task, keep config.History) boundTask {
	b := boundTask{task: t, job: t.policy()}
	if t.Config.IsCommand() {
		b.job.Run = r.command(t, keep)
		return b
	}
	b.flush = &flushJob{task: t, term: r.term, metrics: r.metrics, told: r.told, notes: r.notes, ledger: r.ledger, watch: r.watch}
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
	for first := firstWork; ctx.Err() == nil; first = 0 {
		w, _ := r.current()
		tasks := r.tasks()
		during, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		measure := gauges{r.ledger, r.runner, r.metrics, r.term.Owner(), tasks, r.sampler, r.watch}
		wg.Go(after(during, first, func() { measure.keep(during) }))
		wg.Go(func() {
			if len(tasks) == 0 && len(r.runner.Running()) == 0 {
				return // there is nothing to order
			}
			takeOrders(during, r.log.Named("job"), r.ledger, r.runner, jobsOf(tasks), r.ordered, r.timing.HeartbeatInterval)
		})
		wg.Go(after(during, first, func() { r.countLetters(during, w) }))
		wg.Go(func() { r.watchStages(during, w) })
		if ledgers := w.toPrune(); len(ledgers) > 0 {
			wg.Go(after(during, first, func() { pruneLedgers(during, r.log.Named("ledger"), ledgers) }))
		}
		wg.Go(func() {
			if abdication := r.resign.Watch(during); abdication != nil {
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
func newRunner(c config.Config, ledger job.Ledger, logger *zap.Logger, metrics *status.Metrics, notes *alert.Notifications, clock *slotClock, store *outage.Outage, hold func() bool, idle func() time.Duration) *job.Runner {
	return job.NewRunner(ledger, site.NewID, job.Config{
		Logger:        logger.Named("job"),
		Clock:         clock.now,
		FinishTimeout: finishTimeout(c.Election.Drain),
		OnStart:       func(r job.Run) { metrics.JobStarted(r.Job, clock.now().Sub(r.Slot)) },
		OnFinish: func(r job.Record) {
			metrics.JobFinished(r.Job, string(r.Trigger), string(r.State), r.Finished, r.Finished.Sub(r.Started))
			notes.Finished(r)
		},
		Hold:      hold,
		OnIdle:    idle,
		OnAttempt: store.Tried,
		Shared: func(err error) bool {
			return store.Explains(err) || errors.Is(err, job.ErrHeldBack) && store.Lasts()
		},
		OnMissed: func(m job.Missed) {
			metrics.JobMissed(m.Job, string(m.Reason), m.Count)
			notes.Missed(m)
		},
	})
}

// forgetGone takes nodes off the list that have been gone for a day: hosts come
// and go, and nobody else clears up. What fails is done in the next term.
func forgetGone(ctx context.Context, election site.Election) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if p, err := election.Picture(ctx, 0); err == nil {
		_ = election.Forget(ctx, p.Nodes, p.Now.Add(-redislock.ForgottenAfter))
	}
}
