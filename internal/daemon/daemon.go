package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"baton/internal/config"
	"baton/internal/elector"
	"baton/internal/redisstore"
	"baton/internal/status"

	"go.uber.org/zap"
)

// Options are what a daemon has from the process that it lives in.
type Options struct {
	Version string
	Logger  *zap.Logger
	Getenv  func(string) (string, bool)
	// Exit ends the process at once. It is called when work does not stop in time.
	Exit func(code int)
	// Ready, if set, is told the address of the status page once everything runs.
	Ready func(address string)
}

// ExitCannotStop is the process' exit code when its work outlived its lease.
const ExitCannotStop = 4

// Run is the daemon: it campaigns, leads and runs jobs until ctx ends, then stops
// the jobs, releases the lock and returns. An error means that it could not start,
// or that its listener failed; a Redis or database that is away is none.
func Run(ctx context.Context, c config.Config, o Options) error {
	log := o.Logger.With(zap.String("node_id", c.Node.ID))

	store, err := openRedis(c)
	if err != nil {
		return err
	}
	defer closing(log, "redis", store.Close)
	at, err := openVenue(c, store)
	if err != nil {
		return err
	}
	defer closing(log, "quorum", at.close)
	dbs, err := openDatabases(c)
	if err != nil {
		return err
	}
	defer closing(log, "databases", dbs.close)

	probes, err := openProbes(c)
	if err != nil {
		return err
	}
	defer closing(log, "databases' probes", probes.close)

	metrics := status.NewMetrics(o.Version, jobNames(c))
	tasks, err := newTasks(c, store, dbs, metrics, log)
	if err != nil {
		return err
	}

	listener, address, err := listen(c.HTTP.Listen)
	if err != nil {
		return err
	}

	ledger := at.ledger(store)
	runner := newRunner(c, ledger, o.Logger, metrics)
	election := at.election()
	hints := make(chan elector.Hint, 16)
	var listening atomic.Int32
	resign := newAbdicator(c, probes, election, log.Named("election"))
	lead := leader{
		log: log, runner: runner, tasks: tasks, metrics: metrics, ledger: ledger, databases: dbs, election: election, resign: resign,
		look: c.Election.HeartbeatInterval, first: &firstLook{config: c, log: log.Named("doctor")},
	}

	lock, err := at.lock(redisstore.Presence{
		Version: o.Version, ConfigHash: config.Hash(c), Address: address, Priority: c.Node.Priority, Observer: !c.Node.IsCandidate(),
	})
	if err != nil {
		return err
	}
	notifier := newNotifier(log)
	watcher := &observer{log: log.Named("election"), metrics: metrics, notify: notifier.send, lockKey: c.Election.LockKey, storeSince: time.Now(), aside: c.Election.PollInterval}
	watcher.leaseFile, _ = leasePath(o.Getenv)
	watcher.epochs = openEpochs(statePath(o.Getenv), c.Election.LockKey, watcher.log)
	resign.observer = watcher
	el, err := elector.New(lock, lead.lead, elector.Config{
		NodeID: c.Node.ID, Timing: timing(c.Election), PollInterval: c.Election.PollInterval,
		NewOwner: newID, Floor: watcher.epochs.floor(ctx, c, dbs), Observer: !c.Node.IsCandidate(), Hints: hints, Observe: watcher.observe,
		Hinted: func() bool { return int(listening.Load()) == len(at.stores) }, HintSpread: at.spread(),
		Die: func(reason string) { die(log, reason, o.Exit) },
	})
	if err != nil {
		return err
	}
	watcher.elector = el

	n := &node{config: c, version: o.Version, venue: at, election: election,
		ledger: ledger, tasks: tasks, elector: el, runner: runner, observer: watcher}

	// Everything below runs until its own context ends. The election goes first:
	// while it winds down, the page still tells.
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	var wg sync.WaitGroup
	wg.Go(func() { at.watch(background, hints, &listening) })
	wg.Go(func() { watcher.keepFiles(background) })
	wg.Go(func() { resign.comeBack(background) })
	wg.Go(func() { notifier.watchdog(background, n.health) })
	wg.Go(func() { shrink(background, log) })

	electing, stopElecting := context.WithCancel(ctx)
	defer stopElecting()
	var served error
	if listener != nil {
		server := status.New(status.Config{
			Source: n.snapshot, Health: n.health, Metrics: metrics, Logger: log.Named("http"), NodeID: c.Node.ID, Version: o.Version,
		})
		wg.Go(func() {
			defer stopElecting() // a listener that fails ends the daemon, in order
			served = server.Serve(background, listener)
		})
	}

	log.Info("started", zap.String("version", o.Version), zap.String("redis", at.host()), zap.Int("jobs", len(tasks)), zap.String("http", address))
	notifier.ready()
	if o.Ready != nil {
		o.Ready(address)
	}
	// When the shutdown begins, not when it is over: jobs may take a while to end.
	context.AfterFunc(electing, func() { notifier.send("STOPPING=1") })
	err = el.Run(electing)
	leave(ctx, lock, c.Election.AttemptTimeout)
	stopBackground()
	wg.Wait()
	log.Info("stopped")
	return errors.Join(err, served)
}

// startedUp is when what happens at the start is over.
const startedUp = 2 * time.Second

// shrink waits until the node has started and gives back what only that has needed.
func shrink(ctx context.Context, log *zap.Logger) {
	select {
	case <-ctx.Done():
	case <-time.After(startedUp):
		if err := releaseStartUp(); err != nil {
			log.Debug("the pages of the start could not be given back", zap.Error(err))
		}
	}
}

// tellWithin is what the log gets to note why the process dies; it is below the
// margin between the hard stop and the end of the lease.
const tellWithin = 50 * time.Millisecond

// die ends the process at once: it tells why, but waits for no log that hangs.
func die(log *zap.Logger, reason string, exit func(code int)) {
	told := make(chan struct{})
	go func() {
		defer close(told)
		log.Error("ending the process: a leader that cannot stop must die", zap.String("reason", reason))
		_ = log.Sync() // a terminal or pipe cannot be synced
	}()
	select {
	case <-told:
	case <-time.After(tellWithin):
	}
	exit(ExitCannotStop)
}

// listen binds the status page's address; "off" binds nothing.
func listen(address string) (net.Listener, string, error) {
	if address == "off" {
		return nil, "", nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, "", fmt.Errorf("http.listen: %w; is another baton running here? Choose another address, or \"off\"", err)
	}
	return l, l.Addr().String(), nil
}

// leave takes the node off the list; the list forgets it later if that fails.
func leave(ctx context.Context, lock nodeLock, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	_ = lock.Leave(ctx)
}

func closing(log *zap.Logger, what string, shut func() error) {
	if err := shut(); err != nil {
		log.Warn("closing "+what, zap.Error(err))
	}
}

func jobNames(c config.Config) []string {
	names := make([]string, len(c.Jobs))
	for i, j := range c.Jobs {
		names[i] = j.Name
	}
	return names
}
