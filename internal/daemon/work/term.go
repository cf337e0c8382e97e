// Package work does the work of a node under a lock: the jobs of its terms, and the work beside the jobs.
//
//	Lock    what all terms of this node under one lock share: ledger, metrics, the memory of the jobs (Watch)
//	Task    a configured job with its pipeline; it lives as long as the configuration has the same job
//	Term    one term: Load binds the tasks to it, and again after a reload; unchanged tasks keep their progress
//
// While a term lasts, the runner (package job) starts the jobs' runs. Beside them Accompany
//
//   - carries out the operators' orders to the jobs, and the scheduled verifications;
//   - keeps gauges, samples, and the count of dead letters current, and reports the events of captures;
//   - notes the stages of the jobs, logs those without a job, and prunes the ledgers in the databases;
//   - releases flushes that a reload has taken out, once their last runs have ended.
//
// The rules: a flush writes under its term's fencing token only. Failures of the work beside the jobs end no term: it tries again. Orders
// stay in Redis until they are answered, so the next leader finds them. [Term.End] ends the work of flushes between runs: another node
// continues it.
//
// What fails, and what then:
//
//   - A newer leader has the fence: the run ends as not the leader's, and writes nothing.
//   - Too many dead letters, a gap, an emptied source, or too many vanished rows in a pass that every later run would repeat: the job is
//     paused until an operator decides.
//   - A store is away: its jobs fail at once, without waiting, and the other jobs go on.
//   - This host's clock is far from the ledger's: slots come by the ledger's clock ([Clock]).
//   - A leader has died: a standby shows the state of the jobs in the ledger, and a flush that was behind stays so until the next count.
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

// Lock holds the parts that all terms of a node under one lock share.
type Lock struct {
	Key     string
	Timing  config.Election
	Log     *zap.Logger
	Ledger  *redisledger.Ledger
	Stages  *staging.Stages // of the node's own lock: the note of jobs and their stages
	Stores  *storehealth.Health
	Metrics *metrics.Metrics
	Elected *metrics.Election
	Notes   *alert.Notifications
	Letters *LetterCounts
	Watch   *Watch
	Traces  *trace.Tracer
	Wardens *command.Reserve
	Runner  *job.Runner
	Ordered <-chan elector.Hint  // signals that operators may have ordered something
	Config  func() config.Config // in force
}

// Load is the work under a lock by one configuration.
type Load struct {
	Config    config.Config // its jobs are those of the tasks
	Tasks     []Task
	Staged    map[staging.At]string // the keys beside which the node's jobs stage; nil: the lock is not the node's own
	Databases site.Databases        // all of the node's
}

// Term is the work of one term. Its jobs may be replaced while it lasts.
type Term struct {
	Lock
	term     *elector.Term
	sampler  *sampler
	captures *captureReporter

	mu    sync.Mutex
	bound map[string]boundTask // by job
	left  []*leftTask          // flushes that were taken out or replaced, and are not released yet
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
	t.captures = t.newCaptureReporter()
	return t
}

// End ends the work of flushes between their runs: another node continues it.
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

// Commands are the names of the jobs with commands that are still running.
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

// Load binds tasks to the term. An unchanged task stays bound as it is: it keeps its progress.
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

// Accompany does the work beside the jobs until ctx ends: some of it at once, the rest after a while.
func (t *Term) Accompany(ctx context.Context, w Load, later time.Duration) {
	tasks := t.tasks()
	var wg sync.WaitGroup
	measure := gauges{t.Ledger, t.Runner, t.Metrics, t.term.Owner(), tasks, t.sampler, t.Watch}
	wg.Go(After(ctx, later, func() { measure.keep(ctx) }))
	wg.Go(func() {
		if len(tasks) == 0 && len(t.Runner.Running()) == 0 {
			return // no job could have orders
		}
		orders{
			log: t.Log.Named("job"), ledger: t.Ledger, runner: t.Runner,
			operations: &operations{Term: t, under: map[string]context.CancelFunc{}},
		}.take(ctx, jobsOf(tasks), t.Ordered, t.Timing.HeartbeatInterval)
	})
	wg.Go(After(ctx, later, func() { t.countLetters(ctx, w) }))
	wg.Go(func() { t.scheduleVerifications(ctx, tasks) })
	wg.Go(func() { t.watchStages(ctx, w) })
	wg.Go(func() { t.captures.keep(ctx, tasks) })
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
