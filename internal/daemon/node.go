package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"baton/internal/alert"
	"baton/internal/balance"
	"baton/internal/command"
	"baton/internal/config"
	"baton/internal/crash"
	"baton/internal/daemon/epochs"
	"baton/internal/daemon/identity"
	"baton/internal/daemon/inventory"
	"baton/internal/daemon/outage"
	"baton/internal/daemon/site"
	"baton/internal/daemon/storehealth"
	"baton/internal/daemon/tasks"
	"baton/internal/daemon/work"
	"baton/internal/diagnose"
	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/job"
	"baton/internal/operate/direct"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/status"
	"baton/internal/status/metrics"
	"baton/internal/trace"
)

// node is a running daemon. It holds its own state, and the parts that its candidacies share. A candidacy is the node's part in the
// election of one lock.
type node struct {
	options    Options
	log        *zap.Logger
	id         string
	address    string              // of the status page
	store      *redisconn.Store    // the store of the lock
	stores     *storehealth.Health // the other stores that jobs read
	traces     *trace.Tracer       // nil: there are no traces
	lockStores *site.LockStores
	metrics    *metrics.Metrics
	notifier   notifier

	identity      *identity.Identity
	clock         *work.Clock
	outage        *outage.Outage // of the Redis in which the elections take place
	dataOutage    *outage.Outage // of the Redis with the data: the same outage, unless there is a quorum
	notifications *alert.Notifications
	balancer      *balance.Balancer
	beat          heartbeat.Beat // renews the locks together
	subscriber    *subscriber
	reluctant     atomic.Bool // the node takes no locks that only spread the work
	willing       *time.Timer // ends reluctant; nil: it has not begun
	wardens       *command.Reserve
	termLimiter   job.StartLimiter // limits the terms that begin: each costs far more than its renewals, and hundreds may be won at once

	answers      *direct.Site // answers the page and the API
	letterCounts *work.LetterCounts

	epochFile  epochs.File
	announcing sync.Mutex // held while systemd is notified

	reloadRequests chan reloadRequest

	mu          sync.Mutex
	inventory   inventory.Inventory        // in force
	edition     int                        // the number of inventories so far
	candidacies []*candidacy               // the first is the candidacy for the node's own lock
	roles       map[string]string          // the roles that systemd shows, by lock key
	beingClosed map[string]<-chan struct{} // candidacies that are being left
	running     sync.WaitGroup             // candidacies
	retiring    sync.WaitGroup             // tasks that a reload has replaced
	failed      error                      // why a candidacy has ended by itself
}

func newNode(c config.Config, o Options, traces *trace.Settings) *node {
	log := o.Logger.With(zap.String("node_id", c.Node.ID))
	n := &node{
		options: o, log: log, id: c.Node.ID, inventory: inventory.Inventory{Config: c, Hash: config.Hash(c)},
		notifier: newNotifier(log), roles: map[string]string{}, beingClosed: map[string]<-chan struct{}{},
		reloadRequests: make(chan reloadRequest),
		metrics:        metrics.New(o.Version, jobNames(c)),
	}
	n.traces = trace.NewTracer(traces, trace.Options{
		Version: o.Version, NodeID: n.id, Log: log.Named("trace"),
		Count: func(outcome trace.Outcome, spans int) { n.metrics.TraceSpans(string(outcome), spans) },
	})
	n.stores = storehealth.New(n.log, n.metrics.StoreUp)
	n.answers = n.newAnswers()
	n.letterCounts = work.NewLetterCounts(n.answers.Waiting)
	n.metrics.AddFlushes(flushNames(c)...)
	n.metrics.AddComparable(tasks.Comparable(c)...)
	n.metrics.AddCaptures(work.CaptureCodes(), tasks.Captures(c)...)
	work.ShowLateAfter(n.metrics, c)
	n.subscriber = newSubscriber()
	n.identity = identity.New(n.id, log)
	n.clock = work.NewClock(log.Named("clock"), n.identity.ClockIs)
	n.notifications = alert.New(c, site.NewID, log.Named("notify"), n.metrics)
	n.wardens = newWardens(c)
	n.termLimiter = job.NewStartLimiter()
	n.balancer = balance.New(n.id, n.balanceViews, c.Election.PollInterval, log.Named("balance"))
	return n
}

// open prepares all connections and jobs, without connecting.
func (n *node) open(c config.Config) (err error) {
	if n.store, err = site.OpenRedis(c); err != nil {
		return err
	}
	if n.lockStores, err = site.Open(c, n.store); err != nil {
		return err
	}
	n.outage = outage.New(n.log.With(zap.String("redis", n.lockStores.Host())))
	if n.dataOutage = n.outage; n.lockStores.Quorum {
		n.dataOutage = outage.New(n.log.With(zap.String("redis", n.store.Host())))
	}
	if len(c.LockKeys()) > 1 {
		n.lockStores.Share()
	}
	all, err := inventory.Inventory{}.Next(c, n.store, n.reports())
	if err == nil {
		n.inventory = all
		n.stores.Use(all.Stores.Used(c))
	}
	return err
}

// newWardens returns the reserve that runs the commands of jobs.
func newWardens(c config.Config) *command.Reserve {
	r := command.NewReserve([]string{"/proc/self/exe", "warden"})
	r.Keep(commandsToCome(c))
	return r
}

// commandsToCome returns how many commands may start on this node at the same moment.
func commandsToCome(c config.Config) int {
	if !c.Node.IsCandidate() {
		return 0
	}
	return len(c.Jobs) - len(flushNames(c))
}

func (n *node) reports() work.Reports {
	return work.Reports{Metrics: n.metrics, Notes: n.notifications, Traces: n.traces, Log: n.log}
}

// close closes everything that open opened before open failed.
func (n *node) close() {
	for _, c := range n.candidacies {
		c.lock.Close()
	}
	n.outage.Close()
	n.dataOutage.Close()
	n.stores.Close()
	_ = n.answers.Close() // errors are in its log
	closing(n.log, "databases and stores", func() error { return n.inventory.CloseBut(inventory.Inventory{}) })
	if n.lockStores != nil {
		closing(n.log, "quorum", n.lockStores.Close)
	}
	if n.store != nil {
		closing(n.log, "redis", n.store.Close)
	}
}

// join makes the node's candidacies. They do not campaign yet.
func (n *node) join(ctx context.Context) (err error) {
	n.candidacies, err = n.newCandidacies(ctx, n.inventory.Config.LockKeys(), n.inventory)
	return err
}

// nodeInfo returns the data about this node that the node sends to the other nodes.
func (n *node) nodeInfo(w *inventory.Workload) redislock.NodeInfo {
	own := w.Config.Node
	p := redislock.NodeInfo{
		Reluctant: n.reluctant.Load(),
		Version:   n.options.Version, ConfigHash: w.Hash, Address: n.address, Priority: own.Priority, Observer: !own.IsCandidate(),
		Jobs: append([]string{}, tasks.Names(w.Tasks)...), ConfigMS: w.Since.UnixMilli(),
	}
	n.identity.Describe(&p)
	return p
}

// campaign tries to get every lock until ctx ends. It returns when all locks are released.
func (n *node) campaign(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hearing, deaf := context.WithCancel(context.WithoutCancel(ctx)) // hints are received until the last lock is released
	var listening sync.WaitGroup
	defer listening.Wait()
	defer deaf()
	listening.Go(func() { n.subscriber.run(hearing) })
	n.mu.Lock()
	for _, c := range n.candidacies {
		n.start(ctx, c, cancel)
	}
	n.mu.Unlock()
	over := make(chan struct{})
	n.reloads(ctx, cancel, over)
	n.running.Wait()
	close(over)
	n.retiring.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failed
}

// start runs a candidacy. If the candidacy fails, start ends all other candidacies.
func (n *node) start(ctx context.Context, c *candidacy, cancel context.CancelCauseFunc) {
	own, leave := context.WithCancel(ctx)
	c.leave = leave
	n.running.Go(func() {
		if err := c.run(own); err != nil {
			n.mu.Lock()
			n.failed = errors.Join(n.failed, err)
			n.mu.Unlock()
			cancel(err)
		}
	})
}

func (n *node) all() []*candidacy {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]*candidacy(nil), n.candidacies...)
}

// leaseFile returns the path of the file that describes the lease of a lock. It returns "" if there is no runtime directory.
func (n *node) leaseFile(lockKey string) string {
	path, ok := crash.LeasePath(n.options.Getenv)
	if ok && lockKey != n.inventory.Config.Election.LockKey {
		path = crash.LeasePathOf(path, lockKey)
	}
	return path
}

// announce notifies systemd of the node's role in the election of a lock. It sends one announcement after the other, because systemd shows
// the announcement that it received last.
func (n *node) announce(lockKey, role string) {
	n.announcing.Lock()
	defer n.announcing.Unlock()
	n.mu.Lock()
	n.roles[lockKey] = role
	own := n.inventory.Config.Election.LockKey
	texts := []string{n.roles[own]}
	for _, c := range n.candidacies {
		if other := n.roles[c.lockKey]; c.lockKey != own && other != "" {
			texts = append(texts, c.lockKey+": "+other)
		}
	}
	n.mu.Unlock()
	n.notifier.send("STATUS=" + strings.Join(texts, "; "))
}

// keepIdentity reads the list of nodes repeatedly until ctx ends. It sends changes of this node's data to the other nodes.
func (n *node) keepIdentity(ctx context.Context) {
	n.identity.Keep(ctx, func(ctx context.Context) {
		_, _ = n.all()[0].election.State(ctx, 0) // the identity sees the state, or a later reading follows
	}, func() {
		for _, c := range n.all() {
			c.present()
		}
	})
}

// stuckAfter is how long the job loop may make no progress before it counts as stuck. This time is much longer than the longest pause of
// the loop.
const stuckAfter = 2 * time.Minute

// electionStuckAfter returns how long the election loop may make no progress before it counts as stuck. This time is much longer than the
// longest pause of the loop, which is the configured interval and one attempt.
func electionStuckAfter(e config.Election) time.Duration {
	return stuckAfter + 2*max(e.HeartbeatInterval, e.PollInterval) + e.AttemptTimeout
}

// health returns the health from the node's memory, because it must never wait for a server.
func (n *node) health() status.Health {
	all := n.all()
	own := all[0]
	term := own.elector.Leading()
	_, waiting := own.waiting()
	h := status.Health{
		Live: true, Ready: true, Leading: term != nil && term.Trusted(), Leader: own.elector.Holder(), Waiting: waiting,
	}
	for _, c := range all {
		if idle := c.elector.SinceProgress(); idle > electionStuckAfter(c.timing) {
			h.Live, h.Reason = false, fmt.Sprintf("the election loop of lock %q has not moved for %v", c.lockKey, idle.Round(time.Second))
		} else if idle := c.runner.SinceProgress(); idle > stuckAfter {
			h.Live, h.Reason = false, fmt.Sprintf("the job loop of lock %q has not moved for %v", c.lockKey, idle.Round(time.Second))
		}
	}
	return h
}

// waiting returns the reason why this node does not take the lock, for the case that no other client holds the lock. The reason is a code
// for programs and a text for people.
func (c *candidacy) waiting() (elector.Code, string) {
	if c.elector.Leading() != nil {
		return "", ""
	}
	if code, why := c.elector.Waiting(); why != "" {
		return code, why
	}
	if why := c.observer.coolDown.Reason(); why != "" {
		return elector.CodeCoolDown, why
	}
	return "", ""
}

// snapshot gathers the data that the status page shows. If it returns an error, the snapshot still contains the data that the node has in
// memory.
func (n *node) snapshot(ctx context.Context) (diagnose.Snapshot, error) {
	own, all := n.own(), n.all()
	views := make([]direct.View, len(all))
	for i, c := range all {
		views[i] = c.view()
	}
	s, err := direct.Gather(ctx, own, views)
	direct.SeenNow(s.Nodes, n.id)
	return s, err
}

// own returns the part of the snapshot that needs no request to a server.
func (n *node) own() diagnose.Snapshot {
	c := n.all()[0]
	own := diagnose.Snapshot{
		NodeID: n.id, Version: n.options.Version, LockKey: c.lockKey, Now: time.Now().UTC(), Role: diagnose.RoleStandby,
	}
	own.Redis = diagnose.Redis{Host: n.lockStores.Host(), OK: true, Since: c.observer.since()}
	if trouble := c.elector.StoreTrouble(); trouble != nil {
		own.Role = diagnose.RoleConnecting
		own.Redis.OK, own.Redis.Error = false, trouble.Error()
	}
	if c.elector.Leading() != nil {
		own.Role = diagnose.RoleLeading
	}
	own.Stores = n.stores.States()
	own.WaitingCode, own.Waiting = c.waiting()
	n.mu.Lock()
	own.Jobs = direct.ConfiguredJobs(work.Plain(n.inventory.Tasks), own.Now)
	n.mu.Unlock()
	return own
}
