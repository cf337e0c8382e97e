package daemon

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"baton/internal/alert"
	"baton/internal/command"
	"baton/internal/config"
	"baton/internal/daemon/abdication"
	"baton/internal/daemon/epochs"
	"baton/internal/daemon/inventory"
	"baton/internal/daemon/site"
	"baton/internal/daemon/storehealth"
	"baton/internal/daemon/tasks"
	"baton/internal/daemon/work"
	"baton/internal/elector"
	"baton/internal/flush/source/staging"
	"baton/internal/job"
	"baton/internal/operate/direct"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/status/metrics"
	"baton/internal/trace"
)

// candidacy is this node's part in one election: it contends for one lock, and runs the
// jobs under that lock while it leads. The node has the parts that all candidacies share.
type candidacy struct {
	log        *zap.Logger
	lockKey    string
	timing     config.Election
	lockStores *site.LockStores
	election   site.Election
	ledger     *redisledger.Ledger
	registry   *staging.Stages // of the node's own lock: where it is noted who stages where
	metrics    *metrics.Metrics
	elected    *metrics.Election
	notes      *alert.Notifications
	runner     *job.Runner
	clock      *work.Clock
	abdicator  *abdication.Abdicator
	firstCheck *work.FirstCheck
	observer   *observer
	subscriber *subscriber
	lock       site.NodeLock
	presence   func(*inventory.Workload) redislock.Presence // the presence that the node registers
	samples    *work.Samples
	recentRuns *work.RecentRuns
	letters    *work.LetterCounts
	watch      *work.Watch
	wardens    *command.Reserve
	traces     *trace.Tracer
	turns      job.Turns
	elector    *elector.Elector
	hints      chan elector.Hint
	data       *redisconn.Store // where orders are given
	stores     *storehealth.Health
	ordered    chan elector.Hint // something may have been

	listening atomic.Int32  // to how many of the servers that the election takes place in
	stopped   chan struct{} // run has returned
	leave     context.CancelFunc
	closed    chan struct{} // nothing of it is left
	withdrawn bool          // the node's to know: no job is under the lock any more

	mu          sync.Mutex
	work        *inventory.Workload // in force
	runningTerm *runningTerm        // the term that goes on; nil between terms
	ending      string              // the event before the lead is given up: "the end of report"; "" most of the time
}

// newCandidacy makes the node's part in the election of a lock. It does not connect.
func (n *node) newCandidacy(ctx context.Context, lockKey string, w *inventory.Workload, first *work.FirstCheck) (*candidacy, error) {
	at := n.lockStores.ForLock(lockKey)
	c := &candidacy{
		log: n.log.Named("election").With(zap.String("lock_key", lockKey)), lockKey: lockKey, timing: w.Config.Election, lockStores: at,
		election: at.Election(), ledger: at.Ledger(n.store), notes: n.notifications,
		metrics: n.metrics, elected: n.metrics.Election(lockKey),
		hints: make(chan elector.Hint, 16), data: n.store, stores: n.stores, ordered: make(chan elector.Hint, 1), presence: n.presence,
		stopped: make(chan struct{}), closed: make(chan struct{}), work: w, clock: n.clock, firstCheck: first,
		subscriber: n.subscriber, letters: n.letterCounts, wardens: n.wardens, turns: n.turns, traces: n.traces,
	}
	c.registry = staging.NewStages(n.openStores, n.lockStores.ForLock(n.inventory.Config.Election.LockKey).Ledger(n.store))
	c.samples, c.recentRuns, c.watch = work.NewSamples(lockKey, c.ledger), work.NewRecentRuns(lockKey, c.ledger), work.NewWatch()
	c.runner = work.NewRunner(c.ledger, work.RunnerOptions{
		Drain: c.timing.Drain, Logger: n.options.Logger, Metrics: n.metrics, Notes: n.notifications, Clock: n.clock, Traces: n.traces,
		Outage: n.dataOutage, Stores: n.stores, Hold: c.holdsBack, Idle: c.settle,
	})
	if lockKey == n.inventory.Config.Election.LockKey {
		c.election = n.identity.Watch(c.election)
	}
	coolDown := &abdication.CoolDown{}
	c.abdicator = abdication.New(w.Config, w.Probes, c.election, coolDown, c.log)
	var err error
	if c.lock, err = at.Lock(n.presence(w)); err != nil {
		c.elected.Forget()
		return nil, err
	}
	o := &observer{
		log: c.log, metrics: c.elected, notify: func(state string) { n.announce(lockKey, state) }, lockKey: lockKey,
		storeSince: time.Now(), poll: c.timing.PollInterval, coolDown: coolDown, jobs: c.jobNames, steppedDown: n.steppedDown,
		leaseFile: n.leaseFile(lockKey), epochs: epochs.Open(epochs.Path(n.options.Getenv), lockKey, &n.epochFile, c.log),
		outage: n.outage, traces: n.traces, nodeID: n.id, incarnation: n.presence(w).Instance,
	}
	c.observer = o
	last := o.epochs.Last(ctx, w.Config, w.Databases)
	c.elector, err = elector.New(c.lock, c.lead, elector.Config{
		NodeID: n.id, Timing: site.Timing(c.timing), PollInterval: c.timing.PollInterval,
		NewOwner: site.NewID, Floor: last.Epoch, Lease: last.Lease(), Observer: c.observes,
		Hints: c.hints, Observe: o.observe,
		AcquireDelay: func() time.Duration { return n.balancer.AcquireDelay(lockKey) }, Beat: &n.beat,
		Hinted: func() bool { return int(c.listening.Load()) == len(at.Stores) }, HintSpread: at.Spread(),
		Die: func(reason string) { die(n.log, reason, n.options.Exit) },
	})
	if err != nil {
		c.dismiss()
		return nil, err
	}
	o.elector = c.elector
	return c, nil
}

// openStores are the stores of the configuration in force.
func (n *node) openStores() map[string]*redisconn.Store {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.inventory.Stores
}

// workLock returns the settings that all terms of the candidacy share.
func (c *candidacy) workLock() work.Lock {
	return work.Lock{
		Key: c.lockKey, Timing: c.timing, Log: c.log, Ledger: c.ledger, Stages: c.registry, Stores: c.stores,
		Metrics: c.metrics, Elected: c.elected, Notes: c.notes, Letters: c.letters, Watch: c.watch,
		Traces: c.traces, Wardens: c.wardens, Runner: c.runner, Ordered: c.ordered,
		Config: func() config.Config {
			w, _ := c.current()
			return w.Config
		},
	}
}

// newCandidacies makes several, or none: all at once, since each may ask databases that
// do not answer.
func (n *node) newCandidacies(ctx context.Context, lockKeys []string, i inventory.Inventory) ([]*candidacy, error) {
	if len(lockKeys) == 0 {
		return nil, nil
	}
	made, problems := make([]*candidacy, len(lockKeys)), make([]error, len(lockKeys))
	first := work.NewFirstCheck(inventory.Under(i.Config, lockKeys...), n.log.Named("doctor"))
	var wg sync.WaitGroup
	for at, key := range lockKeys {
		wg.Go(func() { made[at], problems[at] = n.newCandidacy(ctx, key, i.Workload(key), first) })
	}
	wg.Wait()
	err := errors.Join(problems...)
	if err == nil {
		return made, nil
	}
	for _, c := range made {
		if c != nil {
			c.dismiss()
		}
	}
	return nil, err
}

// run contends until ctx ends, then stops the jobs and releases the lock.
func (c *candidacy) run(ctx context.Context) error {
	defer close(c.stopped)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { c.observer.keepFiles(background) })
	wg.Go(func() { c.abdicator.ComeBack(background) })
	wg.Go(func() { c.keepSurroundings(background) })
	for _, s := range c.lockStores.Stores {
		c.subscriber.add(s, redislock.Watched{
			LockKey: c.lockKey, Format: script.Format(c.timing.LockFormat), Hints: c.hints, Listening: &c.listening,
			Noted: true,
		})
	}
	c.subscriber.add(c.data, redislock.Watched{LockKey: c.lockKey, Hints: c.ordered})
	err := c.elector.Run(ctx)
	c.subscriber.remove(c.lockKey)
	leave(ctx, c.lock, c.timing.AttemptTimeout)
	stop()
	wg.Wait()
	return err
}

// close leaves the election.
func (c *candidacy) close() {
	c.leave()
	<-c.stopped
	c.dismiss()
}

// dismiss frees the resources of a candidacy that is not running.
func (c *candidacy) dismiss() {
	c.lock.Close()
	c.elected.Forget()
	c.observer.outage.Forget(c.lockKey)
}

// update puts another workload into force. After it has returned, no run of the old one
// begins. Runs that have begun end under the old one.
func (c *candidacy) update(ctx context.Context, w *inventory.Workload) {
	c.mu.Lock()
	c.work = w
	r := c.runningTerm
	c.mu.Unlock()
	c.abdicator.Use(w.Probes, w.Config)
	c.present()
	if r != nil {
		r.update(ctx, w)
	}
}

// present has the lock register this node as it stands now.
func (c *candidacy) present() {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.presence(c.work)
	p.Ending = c.ending
	c.lock.Present(p)
}

// waitsFor notes the reason why the node waits before it gives the lead up; "" for none.
func (c *candidacy) waitsFor(what string) {
	c.mu.Lock()
	c.ending = what
	c.mu.Unlock()
	c.present()
}

// begin notes that a term has begun, with the workload in force: at once, or an update
// could come between and be undone. ended notes that it is over.
func (c *candidacy) begin(r *runningTerm) job.Workload {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runningTerm = r
	return r.work.Load(c.work.Load)
}

func (c *candidacy) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runningTerm = nil
}

func (c *candidacy) current() (*inventory.Workload, *runningTerm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.work, c.runningTerm
}

// settle informs the term that its runs cannot change anything any more, and returns for how
// long this node still leads: what else goes on beside them would be right on any node.
func (c *candidacy) settle() time.Duration {
	_, r := c.current()
	if r == nil {
		return 0
	}
	r.term.Settle()
	return r.term.UntilHardStop()
}

// holdsBack reports whether nothing is to begin for now: what begins wants the processors
// that the renewal of the lease needs, and without the lease it is for nothing.
func (c *candidacy) holdsBack() bool {
	_, r := c.current()
	return r != nil && r.term.Overdue()
}

// observes reports whether the configuration in force keeps this node from leading.
func (c *candidacy) observes() bool {
	w, _ := c.current()
	return !w.Config.Node.IsCandidate()
}

func (c *candidacy) jobNames() []string {
	w, _ := c.current()
	return tasks.Names(w.Tasks)
}

func (c *candidacy) view() direct.View {
	w, _ := c.current()
	return direct.View{
		LockKey: c.lockKey, Election: c.election, Ledger: c.ledger, Stages: c.registry,
		Tasks: work.Plain(w.Tasks), Poll: c.timing.PollInterval, Rollout: c.rollout(w),
	}
}
