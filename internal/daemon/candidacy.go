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

// candidacy is this node's part in one election: it contends for one lock, and runs the jobs under that lock while it leads. The type
// node contains the parts that all candidacies share.
type candidacy struct {
	log         *zap.Logger
	lockKey     string
	timing      config.Election
	lockStores  *site.LockStores
	election    site.Election
	ledger      *redisledger.Ledger
	registry    *staging.Stages // of the node's own lock; it records which job stages beside which key
	metrics     *metrics.Metrics
	elected     *metrics.Election
	notes       *alert.Notifications
	runner      *job.Runner
	clock       *work.Clock
	abdicator   *abdication.Abdicator
	firstCheck  *work.FirstCheck
	observer    *observer
	subscriber  *subscriber
	lock        site.NodeLock
	nodeInfo    func(*inventory.Workload) redislock.NodeInfo // returns the presence that the node registers
	samples     *work.Samples
	recentRuns  *work.RecentRuns
	letters     *work.LetterCounts
	watch       *work.Watch
	wardens     *command.Reserve
	traces      *trace.Tracer
	termLimiter job.StartLimiter
	elector     *elector.Elector
	hints       chan elector.Hint
	data        *redisconn.Store // the store to which orders are sent
	stores      *storehealth.Health
	ordered     chan elector.Hint // receives a value when an order may have been given

	listening atomic.Int32  // the number of the election's servers whose hints are received
	stopped   chan struct{} // run has returned
	leave     context.CancelFunc
	closed    chan struct{} // closed when all parts of the candidacy have ended
	withdrawn bool          // owned by the node: no job is under the lock any more

	mu          sync.Mutex
	work        *inventory.Workload // in force
	runningTerm *runningTerm        // the running term; nil between terms
	ending      string              // the event before the lead is given up: "the end of report"; "" most of the time
}

// newCandidacy makes the node's part in the election of a lock. It does not contend for the lock yet.
func (n *node) newCandidacy(ctx context.Context, lockKey string, w *inventory.Workload, first *work.FirstCheck) (*candidacy, error) {
	at := n.lockStores.ForLock(lockKey)
	c := &candidacy{
		log: n.log.Named("election").With(zap.String("lock_key", lockKey)), lockKey: lockKey, timing: w.Config.Election, lockStores: at,
		election: at.Election(), ledger: at.Ledger(n.store), notes: n.notifications,
		metrics: n.metrics, elected: n.metrics.Election(lockKey),
		hints: make(chan elector.Hint, 16), data: n.store, stores: n.stores, ordered: make(chan elector.Hint, 1), nodeInfo: n.nodeInfo,
		stopped: make(chan struct{}), closed: make(chan struct{}), work: w, clock: n.clock, firstCheck: first,
		subscriber: n.subscriber, letters: n.letterCounts, wardens: n.wardens, termLimiter: n.termLimiter, traces: n.traces,
	}
	c.registry = staging.NewStages(n.openStores, n.lockStores.ForLock(n.inventory.Config.Election.LockKey).Ledger(n.store))
	c.samples, c.recentRuns, c.watch = work.NewSamples(lockKey, c.ledger), work.NewRecentRuns(lockKey, c.ledger), work.NewWatch()
	c.runner = work.NewRunner(c.ledger, work.RunnerOptions{
		Drain: c.timing.Drain, Logger: n.options.Logger, Metrics: n.metrics, Notes: n.notifications, Clock: n.clock, Traces: n.traces,
		Outage: n.dataOutage, Stores: n.stores, Hold: c.holdsBack, Idle: c.untilHardStop,
	})
	if lockKey == n.inventory.Config.Election.LockKey {
		c.election = n.identity.Watch(c.election)
	}
	coolDown := &abdication.CoolDown{}
	c.abdicator = abdication.New(w.Config, w.Probes, c.election, coolDown, c.log)
	var err error
	if c.lock, err = at.Lock(n.nodeInfo(w)); err != nil {
		c.elected.Forget()
		return nil, err
	}
	o := &observer{
		log: c.log, metrics: c.elected, notify: func(state string) { n.announce(lockKey, state) }, lockKey: lockKey,
		storeSince: time.Now(), poll: c.timing.PollInterval, coolDown: coolDown, jobs: c.jobNames, steppedDown: n.steppedDown,
		leaseFile: n.leaseFile(lockKey), epochs: epochs.Open(epochs.Path(n.options.Getenv), lockKey, &n.epochFile, c.log),
		outage: n.outage, traces: n.traces, nodeID: n.id, incarnation: n.nodeInfo(w).Instance,
	}
	c.observer = o
	last := o.epochs.Last(ctx, w.Config, w.Databases)
	c.elector, err = elector.New(c.lock, c.lead, elector.Config{
		NodeID: n.id, Timing: site.Timing(c.timing), PollInterval: c.timing.PollInterval,
		NewOwner: site.NewID, Floor: last.Epoch, Lease: last.Lease(), Observer: c.observes,
		Hints: c.hints, Observe: o.observe, Counts: true, // work.Term counts its runs; the other work of a term is correct on any node
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

// openStores returns the stores of the configuration in force.
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

// newCandidacies makes all candidacies in parallel, because each candidacy may ask databases that do not answer. If one fails, it makes
// no candidacy.
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

// update puts another workload into force. After update has returned, no run of the old workload begins. Runs in progress end under the
// old workload.
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

// present makes the lock register the current state of this node.
func (c *candidacy) present() {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.nodeInfo(c.work)
	p.Ending = c.ending
	c.lock.SetNodeInfo(p)
}

// waitsFor records the reason why the node waits before it gives up the lead, or "".
func (c *candidacy) waitsFor(what string) {
	c.mu.Lock()
	c.ending = what
	c.mu.Unlock()
	c.present()
}

// begin records that a term has begun, with the workload in force. begin does both in one step, because an update of the workload in
// between would be undone. The method ended records that the term is over.
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

// untilHardStop returns the time until the hard stop, or 0 if this node does not lead. At the hard stop all work of the term must have
// ended.
func (c *candidacy) untilHardStop() time.Duration {
	_, r := c.current()
	if r == nil {
		return 0
	}
	return r.term.UntilHardStop()
}

// holdsBack reports whether nothing may begin for now. A start would use the processors that the renewal of the lease needs, and
// without the lease the start would be useless.
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
