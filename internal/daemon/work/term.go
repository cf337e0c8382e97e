// Package work does the work of a node under a lock: the jobs of its terms, and the work beside the jobs.
//
//	Lock    the parts that all terms of this node under one lock share: ledger, metrics, the memory of the jobs (Watch)
//	Task    a configured job with its pipeline; a task exists as long as the configuration has the same job
//	Term    one term: Load binds the tasks to it, and again after a reload; unchanged tasks keep their progress
//
// While a term lasts, the runner (package job) starts the jobs' runs. At the same time Accompany
//
//   - executes the operators' orders to the jobs, and the scheduled verifications;
//   - keeps gauges, samples, and the count of dead letters current, and reports the events of captures;
//   - records the stages of the jobs, logs the stages without a job, and prunes the ledgers in the databases;
//   - releases flushes that a reload has removed, when their last runs have ended.
//
// The rules: a flush writes only under its term's fencing token. Failures of Accompany's work end no term, because the work is tried
// again. Orders stay in Redis until they are answered, so that the next leader finds them. [Term.End] ends the work of flushes between
// runs, because another node continues this work.
//
// What fails, and what then:
//
//   - A newer leader has the fence: the run ends with the error that this node no longer leads, and writes nothing.
//   - Too many dead letters, a gap, an emptied source, or too many vanished rows in a pass that every later run would repeat: the job is
//     paused until an operator decides.
//   - A store is away: its jobs fail at once, without waiting, and the other jobs go on.
//   - This host's clock is far from the ledger's: slots follow the ledger's clock ([Clock]).
//   - A leader has died: a standby shows the state of the jobs in the ledger, and a flush that was behind still counts as behind until the
//     next count.
package work

import (
	"context"
	"errors"
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

// Lock holds the parts that all terms of a node under the same lock share.
type Lock struct {
	Key     string
	Timing  config.Election
	Log     *zap.Logger
	Ledger  *redisledger.Ledger
	Stages  *staging.Stages // of the node's own lock: the record of jobs and their stages
	Stores  *storehealth.Health
	Metrics *metrics.Metrics
	Elected *metrics.Election
	Notes   *alert.Notifications
	Letters *LetterCounts
	Watch   *Watch
	Traces  *trace.Tracer
	Wardens *command.Reserve
	Runner  *job.Runner
	Ordered <-chan elector.Hint  // receives a value when operators may have ordered something
	Config  func() config.Config // in force
}

// Load is the workload of a lock, as one configuration defines it: its tasks and their databases.
type Load struct {
	Config    config.Config // its jobs are the jobs of the tasks
	Tasks     []Task
	Staged    map[staging.Location]string // the keys beside which the node's jobs stage; nil: the lock is not the node's own
	Databases site.Databases              // all databases of the node
}

// Term does the work of one term. A reload may replace the jobs of a running term.
type Term struct {
	Lock
	term     *elector.Term
	sampler  *sampler
	captures *captureReporter

	mu    sync.Mutex
	bound map[string]boundTask // by job
	left  []*leftTask          // flushes that were removed or replaced, and are not released yet
}

// boundTask is a task that is bound to one term.
type boundTask struct {
	task  Task
	job   job.Job
	flush *flushJob // nil for a command
}

// Begin returns the Term that does the work of a term.
func (l Lock) Begin(term *elector.Term) *Term {
	t := &Term{Lock: l, term: term, bound: map[string]boundTask{},
		sampler: &sampler{log: l.Log, ledger: l.Ledger, nodeID: term.NodeID(), epoch: term.Epoch()}}
	t.captures = t.newCaptureReporter()
	return t
}

// End ends the background work that flushes do between their runs, because another node continues this work.
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

// Commands returns the names of the command jobs that are still running.
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

// Load binds the tasks of a workload to the term. An unchanged task stays bound, and keeps its progress.
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
		b.job.Run = Counted(t.term, t.command(of, keep))
		return b
	}
	b.flush = &flushJob{
		Task: of, term: t.term, metrics: t.Metrics, elected: t.Elected,
		notes: t.Notes, ledger: t.Ledger, watch: t.Watch, stores: t.Stores, traces: t.Traces,
	}
	b.job.Run = Counted(t.term, b.flush.run)
	return b
}

// Counted wraps a job's work so that the term counts it. While counted work runs, the process must not live longer than the term.
func Counted(term *elector.Term, work job.Func) job.Func {
	return func(ctx context.Context, r job.Run) (job.Result, error) {
		if !term.Begin() {
			<-ctx.Done() // the term is about to end
			return job.Result{}, errNotStarted
		}
		defer term.End()
		return work(ctx, r)
	}
}

var errNotStarted = errors.New("the run was not started")

// Accompany does the work of the term beside the jobs until ctx ends. Some of this work begins immediately. The rest begins after the
// duration in the argument later.
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
