// Package work is what a node does under a lock: the jobs of a term, and what goes on beside them.
package work

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/alert"
	"baton/internal/command"
	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/storehealth"
	"baton/internal/elector"
	"baton/internal/flush/source/staging"
	"baton/internal/job"
	"baton/internal/redisledger"
	"baton/internal/status/metrics"
	"baton/internal/trace"
)

// Lock is what the terms of a node under one lock have in common.
type Lock struct {
	Key     string
	Timing  config.Election
	Log     *zap.Logger
	Ledger  *redisledger.Ledger
	Stages  *staging.Stages // of the node's own lock: where it is noted who stages where
	Stores  *storehealth.Health
	Metrics *metrics.Metrics
	Elected *metrics.Election
	Notes   *alert.Notifications
	Letters *LettersBook
	Watch   *Watch
	Traces  *trace.Tracer
	Wardens *command.Reserve
	Runner  *job.Runner
	Ordered <-chan elector.Hint  // operators may have ordered something
	Config  func() config.Config // in force
}

// Load is what there is to do under a lock as one configuration has it.
type Load struct {
	Config    config.Config // its jobs are those of the tasks
	Tasks     []Task
	Staged    map[staging.At]string // beside which keys any job of the node stages; nil: the lock is not the node's own
	Databases site.Databases        // all of the node's
}

// Term is the work of one term. Its jobs may be replaced while it lasts.
type Term struct {
	Lock
	term    *elector.Term
	sampler *sampler
	follows *follows

	mu    sync.Mutex
	bound map[string]boundTask // by job
	left  []*leftTask          // flushes that were taken out or replaced, and not released yet
}

// boundTask is a task in one term.
type boundTask struct {
	task  Task
	job   job.Job
	flush *flushJob // nil for a command
}

// Begin makes the work of a term.
func (l Lock) Begin(term *elector.Term) *Term {
	t := &Term{Lock: l, term: term, bound: map[string]boundTask{},
		sampler: &sampler{log: l.Log, ledger: l.Ledger, nodeID: term.NodeID(), epoch: term.Epoch()}}
	t.follows = t.newFollows()
	return t
}

// End ends what the flushes do between their runs: another node goes on with it.
func (t *Term) End() {
	t.mu.Lock()
	var flushes []boundTask
	for _, b := range t.bound {
		if b.flush != nil {
			flushes = append(flushes, b)
		}
	}
	for _, l := range t.left {
		flushes = append(flushes, l.boundTask)
	}
	t.mu.Unlock()
	t.release(flushes)
}

// Commands are the names of the jobs whose commands go on.
func (t *Term) Commands() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var jobs []string
	for _, a := range t.Runner.Running() {
		if b, ok := t.bound[a.Job]; ok && b.flush == nil && !slices.Contains(jobs, a.Job) {
			jobs = append(jobs, a.Job)
		}
	}
	return jobs
}

// Load binds tasks to the term. Those that have not changed stay bound as they are:
// they know how far they have come.
func (t *Term) Load(w Load) job.Workload {
	t.mu.Lock()
	defer t.mu.Unlock()
	bound := map[string]boundTask{}
	jobs := make([]job.Job, len(w.Tasks))
	for i, of := range w.Tasks {
		b, ok := t.bound[of.Config.Name]
		if !ok || !b.task.Is(of) {
			b = t.bind(of, w.Config.History)
		}
		bound[of.Config.Name], jobs[i] = b, b.job
	}
	t.leave(bound)
	t.bound = bound
	return job.Workload{Jobs: jobs, MaxConcurrent: w.Config.MaxConcurrentJobs, Idle: t.idle}
}

func (t *Term) bind(of Task, keep config.History) boundTask {
	b := boundTask{task: of, job: of.Policy()}
	if of.Config.IsCommand() {
		b.job.Run = t.command(of, keep)
		return b
	}
	b.flush = &flushJob{
		Task: of, term: t.term, metrics: t.Metrics, elected: t.Elected,
		notes: t.Notes, ledger: t.Ledger, watch: t.Watch, stores: t.Stores, traces: t.Traces,
	}
	b.job.Run = b.flush.run
	return b
}

// Accompany does what goes on beside the jobs until ctx ends: some of it at once, the rest after a while.
func (t *Term) Accompany(ctx context.Context, w Load, later time.Duration) {
	tasks := t.tasks()
	var wg sync.WaitGroup
	measure := gauges{t.Ledger, t.Runner, t.Metrics, t.term.Owner(), tasks, t.sampler, t.Watch}
	wg.Go(After(ctx, later, func() { measure.keep(ctx) }))
	wg.Go(func() {
		if len(tasks) == 0 && len(t.Runner.Running()) == 0 {
			return // there is nothing to order
		}
		orders{
			log: t.Log.Named("job"), ledger: t.Ledger, runner: t.Runner,
			operations: &operations{Term: t, under: map[string]context.CancelFunc{}},
		}.take(ctx, jobsOf(tasks), t.Ordered, t.Timing.HeartbeatInterval)
	})
	wg.Go(After(ctx, later, func() { t.countLetters(ctx, w) }))
	wg.Go(func() { t.scheduleVerifications(ctx, tasks) })
	wg.Go(func() { t.watchStages(ctx, w) })
	wg.Go(func() { t.follows.keep(ctx, tasks) })
	wg.Go(func() { t.releaseLeft(ctx) })
	if ledgers := w.ToPrune(); len(ledgers) > 0 {
		wg.Go(After(ctx, later, func() { pruneLedgers(ctx, t.Log.Named("ledger"), ledgers) }))
	}
	wg.Wait()
}

func (t *Term) tasks() []boundTask {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.bound))
}

func jobsOf(tasks []boundTask) []job.Job {
	jobs := make([]job.Job, len(tasks))
	for i, t := range tasks {
		jobs[i] = t.job
	}
	return jobs
}
