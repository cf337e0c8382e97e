package daemon

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"baton/internal/alert"
	"baton/internal/command"
	"baton/internal/config"
	"baton/internal/daemon/abdication"
	"baton/internal/daemon/epochs"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/elector"
	"baton/internal/flush/source/staging"
	"baton/internal/job"
	"baton/internal/operate/direct"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/status"
)

// candidacy is this node's part in one election: it contends for one lock, and runs the
// jobs under that lock while it leads. What it has in common with the node's other
// candidacies is the node's.
type candidacy struct {
	log        *zap.Logger
	lockKey    string
	timing     config.Election
	venue      *site.Venue
	election   site.Election
	ledger     *redisledger.Ledger
	registry   *staging.Stages // of the node's own lock: where it is noted who stages where
	metrics    *status.Metrics
	told       *status.Election
	notes      *alert.Notifications
	runner     *job.Runner
	clock      *slotClock
	resign     *abdication.Abdicator
	first      *firstLook
	observer   *observer
	subscriber *subscriber
	lock       site.NodeLock
	presence   func(*workload) redislock.Presence // what the node tells of itself
	book       *sampleBook
	letters    *lettersBook
	watch      *jobWatch
	wardens    *command.Reserve
	turns      job.Turns
	elector    *elector.Elector
	hints      chan elector.Hint
	data       *redisconn.Store  // where orders are given
	ordered    chan elector.Hint // something may have been

	listening atomic.Int32  // to how many of the venue's servers
	left      chan struct{} // run has returned
	leave     context.CancelFunc
	parted    chan struct{} // nothing of it is left
	withdrawn bool          // the node's to know: no job is under the lock any more

	mu     sync.Mutex
	work   *workload // in force
	reign  *reign    // the term that goes on; nil between terms
	ending string    // what is waited for before the lead is given up: "the end of report"; "" most of the time
}

// workload is the jobs under one lock as one configuration has them.
type workload struct {
	config    config.Config // its jobs are those of the tasks
	hash      string        // of the whole configuration
	tasks     []task
	staged    map[string]string // beside which keys any job of the node stages; nil: the lock is not the node's own
	databases site.Databases    // all of the node's
	probes    site.Databases
}

// newCandidacy makes the node's part in the election of a lock. It does not connect.
func (n *node) newCandidacy(ctx context.Context, lockKey string, w *workload, first *firstLook) (*candidacy, error) {
	at := n.venue.At(lockKey)
	c := &candidacy{
		log: n.log.Named("election").With(zap.String("lock_key", lockKey)), lockKey: lockKey, timing: w.config.Election, venue: at,
		election: at.Election(), ledger: at.Ledger(n.store), metrics: n.metrics, told: n.metrics.Election(lockKey), notes: n.notifications,
		hints: make(chan elector.Hint, 16), data: n.store, ordered: make(chan elector.Hint, 1), presence: n.presence, left: make(chan struct{}), parted: make(chan struct{}), work: w, clock: n.clock, first: first, subscriber: n.subscriber, letters: n.counted, wardens: n.wardens, turns: n.turns,
	}
	c.registry = staging.NewStages(n.store, n.venue.At(n.config.Election.LockKey).Ledger(n.store))
	c.book, c.watch = newSampleBook(c.ledger), newJobWatch()
	c.runner = newRunner(w.config, c.ledger, n.options.Logger, n.metrics, n.notifications, n.clock, n.dataOutage, c.holdsBack, c.settle)
	if lockKey == n.config.Election.LockKey {
		c.election = n.identity.Watch(c.election)
	}
	aside := &abdication.Aside{}
	c.resign = abdication.New(w.config, w.probes, c.election, aside, c.log)
	var err error
	if c.lock, err = at.Lock(n.presence(w)); err != nil {
		c.told.Forget()
		return nil, err
	}
	o := &observer{
		log: c.log, metrics: c.told, notify: func(state string) { n.announce(lockKey, state) }, lockKey: lockKey,
		storeSince: time.Now(), poll: c.timing.PollInterval, aside: aside, jobs: c.jobNames, steppedDown: n.steppedDown,
		leaseFile: n.leaseFile(lockKey), epochs: epochs.Open(epochs.Path(n.options.Getenv), lockKey, &n.epochFile, c.log),
		outage: n.outage,
	}
	c.observer = o
	last := o.epochs.Last(ctx, w.config, w.databases)
	c.elector, err = elector.New(c.lock, c.lead, elector.Config{
		NodeID: n.id, Timing: site.Timing(c.timing), PollInterval: c.timing.PollInterval,
		NewOwner: site.NewID, Floor: last.Epoch, Lease: last.Lease(), Observer: !w.config.Node.IsCandidate(), Hints: c.hints, Observe: o.observe,
		Courtesy: func() time.Duration { return n.balancer.Courtesy(lockKey) }, Beat: &n.beat,
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

// newCandidacies makes several, or none: all at once, since each may ask databases that
// do not answer.
func (n *node) newCandidacies(ctx context.Context, lockKeys []string, i inventory) ([]*candidacy, error) {
	if len(lockKeys) == 0 {
		return nil, nil
	}
	made, problems := make([]*candidacy, len(lockKeys)), make([]error, len(lockKeys))
	first := newFirstLook(under(i.config, lockKeys...), n.log.Named("doctor"))
	var wg sync.WaitGroup
	for at, key := range lockKeys {
		wg.Go(func() { made[at], problems[at] = n.newCandidacy(ctx, key, i.workload(key), first) })
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
	defer close(c.left)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { c.observer.keepFiles(background) })
	wg.Go(func() { c.resign.ComeBack(background) })
	wg.Go(func() { c.lookAround(background) })
	for _, s := range c.venue.Stores {
		c.subscriber.add(s, redislock.Watched{LockKey: c.lockKey, Format: script.Format(c.timing.LockFormat), Hints: c.hints, Listening: &c.listening})
	}
	c.subscriber.add(c.data, redislock.Watched{LockKey: c.lockKey, Hints: c.ordered})
	err := c.elector.Run(ctx)
	c.subscriber.remove(c.lockKey)
	leave(ctx, c.lock, c.timing.AttemptTimeout)
	stop()
	wg.Wait()
	return err
}

// part leaves the election.
func (c *candidacy) part() {
	c.leave()
	<-c.left
	c.dismiss()
}

// dismiss gives back what the candidacy has. It does not run.
func (c *candidacy) dismiss() {
	c.lock.Close()
	c.told.Forget()
	c.observer.outage.Forget(c.lockKey)
}

// update puts another workload into force. When it returns nothing of the old one
// begins any more; runs that go on end as they were.
func (c *candidacy) update(ctx context.Context, w *workload) {
	c.mu.Lock()
	c.work = w
	r := c.reign
	c.mu.Unlock()
	c.resign.Use(w.probes, w.config)
	c.present()
	if r != nil {
		r.update(ctx, w)
	}
}

// present has the lock tell the others of this node as it stands now.
func (c *candidacy) present() {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.presence(c.work)
	p.Ending = c.ending
	c.lock.Present(p)
}

// waitsFor says what the node waits for before it gives the lead up; "" that it does not.
func (c *candidacy) waitsFor(what string) {
	c.mu.Lock()
	c.ending = what
	c.mu.Unlock()
	c.present()
}

// begin notes that a term has begun, with the workload in force: at once, or an update
// could come between and be undone. ended notes that it is over.
func (c *candidacy) begin(r *reign) job.Workload {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reign = r
	return r.load(c.work)
}

func (c *candidacy) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reign = nil
}

func (c *candidacy) current() (*workload, *reign) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.work, c.reign
}

// settle tells the term that its runs cannot change anything any more, and returns for how
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

func (c *candidacy) jobNames() []string {
	w, _ := c.current()
	return tasks.Names(w.tasks)
}

func (c *candidacy) view() direct.View {
	w, _ := c.current()
	return direct.View{LockKey: c.lockKey, Election: c.election, Ledger: c.ledger, Stages: c.registry, Tasks: plain(w.tasks), Poll: c.timing.PollInterval}
}

// under is the part of a configuration that is about some locks. It takes no more memory
// than it must: there may be hundreds of them.
func under(c config.Config, lockKeys ...string) config.Config {
	c.Election.LockKey = lockKeys[0]
	var jobs []config.Job
	for _, j := range c.Jobs {
		if slices.Contains(lockKeys, j.Lock) {
			jobs = append(jobs, j)
		}
	}
	c.Jobs = jobs
	return c
}
