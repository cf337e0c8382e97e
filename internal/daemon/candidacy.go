package daemon

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/elector"
	"baton/internal/job"
	"baton/internal/redisstore"
	"baton/internal/status"
)

// candidacy is this node's part in one election: it contends for one lock, and runs the
// jobs under that lock while it leads. What it has in common with the node's other
// candidacies is the node's.
type candidacy struct {
	log      *zap.Logger
	lockKey  string
	timing   config.Election
	venue    *venue
	election election
	ledger   *redisstore.Ledger
	metrics  *status.Metrics
	told     *status.Election
	notes    *notifications
	runner   *job.Runner
	resign   *abdicator
	first    *firstLook
	observer *observer
	lock     nodeLock
	book     *sampleBook
	elector  *elector.Elector
	hints    chan elector.Hint

	listening atomic.Int32  // to how many of the venue's servers
	left      chan struct{} // run has returned
	leave     context.CancelFunc
	parted    chan struct{} // nothing of it is left
	withdrawn bool          // the node's to know: no job is under the lock any more

	mu    sync.Mutex
	work  *workload // in force
	reign *reign    // the term that goes on; nil between terms
}

// workload is the jobs under one lock as one configuration has them.
type workload struct {
	config    config.Config // its jobs are those of the tasks
	hash      string        // of the whole configuration
	tasks     []task
	databases databases // all of the node's
	probes    databases
}

// newCandidacy makes the node's part in the election of a lock. It does not connect.
func (n *node) newCandidacy(ctx context.Context, lockKey string, w *workload) (*candidacy, error) {
	at := n.venue.at(lockKey)
	c := &candidacy{
		log: n.log.Named("election").With(zap.String("lock_key", lockKey)), lockKey: lockKey, timing: w.config.Election, venue: at,
		election: at.election(), ledger: at.ledger(n.store), metrics: n.metrics, told: n.metrics.Election(lockKey), notes: n.notifications,
		hints: make(chan elector.Hint, 16), left: make(chan struct{}), parted: make(chan struct{}), work: w,
	}
	c.book = newSampleBook(c.ledger)
	c.runner = newRunner(w.config, c.ledger, n.options.Logger, n.metrics, n.notifications)
	c.first = &firstLook{config: w.config, log: n.log.Named("doctor")}
	if lockKey == n.config.Election.LockKey {
		c.election = attentive{c.election, n.identity}
	}
	c.resign = newAbdicator(w.config, w.probes, c.election, c.log)
	var err error
	if c.lock, err = at.lock(n.presence(w)); err != nil {
		c.told.Forget()
		return nil, err
	}
	o := &observer{
		log: c.log, metrics: c.told, notify: func(state string) { n.announce(lockKey, state) }, lockKey: lockKey,
		storeSince: time.Now(), aside: c.timing.PollInterval, jobs: c.jobNames, steppedDown: n.steppedDown,
		leaseFile: n.leaseFile(lockKey), epochs: openEpochs(statePath(n.options.Getenv), lockKey, c.log),
	}
	o.epochs.file = &n.epochFile
	c.observer, c.resign.observer = o, o
	c.elector, err = elector.New(c.lock, c.lead, elector.Config{
		NodeID: n.id, Timing: timing(c.timing), PollInterval: c.timing.PollInterval,
		NewOwner: newID, Floor: o.epochs.floor(ctx, w.config, w.databases), Observer: !w.config.Node.IsCandidate(), Hints: c.hints, Observe: o.observe,
		Courtesy: func() time.Duration { return n.balancer.courtesy(lockKey) },
		Hinted:   func() bool { return int(c.listening.Load()) == len(at.stores) }, HintSpread: at.spread(),
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
	made, problems := make([]*candidacy, len(lockKeys)), make([]error, len(lockKeys))
	var wg sync.WaitGroup
	for at, key := range lockKeys {
		wg.Go(func() { made[at], problems[at] = n.newCandidacy(ctx, key, i.workload(key)) })
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
	wg.Go(func() { c.venue.watch(background, c.hints, &c.listening) })
	wg.Go(func() { c.observer.keepFiles(background) })
	wg.Go(func() { c.resign.comeBack(background) })
	wg.Go(func() { c.lookAround(background) })
	err := c.elector.Run(ctx)
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
}

// update puts another workload into force. When it returns nothing of the old one
// begins any more; runs that go on end as they were.
func (c *candidacy) update(ctx context.Context, w *workload, p redisstore.Presence) {
	c.mu.Lock()
	c.work = w
	r := c.reign
	c.mu.Unlock()
	c.resign.use(w.probes, w.config)
	c.lock.Present(p)
	if r != nil {
		r.update(ctx, w)
	}
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

func (c *candidacy) jobNames() []string {
	w, _ := c.current()
	return names(w.tasks)
}

func (c *candidacy) view() view {
	w, _ := c.current()
	return view{lockKey: c.lockKey, election: c.election, ledger: c.ledger, tasks: w.tasks}
}

// under is the part of a configuration that is about one lock.
func under(c config.Config, lockKey string) config.Config {
	c.Election.LockKey = lockKey
	c.Jobs = slices.DeleteFunc(slices.Clone(c.Jobs), func(j config.Job) bool { return j.Lock != lockKey })
	return c
}
