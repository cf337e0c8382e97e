package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/command/orphans"
	"baton/internal/config"
	"baton/internal/daemon/adminsocket"
	"baton/internal/daemon/site"
	"baton/internal/daemon/work"
	"baton/internal/status"
	"baton/internal/trace"
)

// Options connect a daemon with its process.
type Options struct {
	Version string
	Logger  *zap.Logger
	Getenv  func(string) (string, bool)
	// Exit ends the process at once. It is called when work does not stop in time.
	Exit func(code int)
	// Load reads the configuration again. It is nil if there is no file to read.
	Load func() (config.Config, error)
	// Reload requests a call of Load.
	Reload <-chan os.Signal
	// Reloaded, if set, is called with each configuration that a reload has put into force.
	Reloaded func(config.Config)
	// Ready, if set, is called with the address of the status page when all parts run.
	Ready func(address string)
}

// tracesOf reads the settings of traces from the environment. It returns nil if no traces are configured.
func tracesOf(getenv func(string) (string, bool)) (*trace.Settings, error) {
	settings, wrong := trace.FromEnvironment(getenv)
	var problems config.Problems
	for _, p := range wrong {
		problems = append(problems, config.Problem{Source: p.Variable, Message: p.Message})
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return settings, nil
}

// ExitCannotStop is the exit code of a process whose work did not end before the end of its lease.
const ExitCannotStop = 4

// Run runs the daemon, which campaigns, leads and runs jobs until ctx ends. Then it stops the jobs, releases its locks and returns. An
// error means that the daemon could not start, or that its listener failed. A Redis or database that is away causes no error.
func Run(ctx context.Context, c config.Config, o Options) error {
	traces, err := tracesOf(o.Getenv)
	if err != nil {
		return err
	}
	n := newNode(c, o, traces)
	defer n.close()
	if err := work.Refused(c, n.wardens); err != nil {
		return err
	}
	if err := n.open(c); err != nil {
		return err
	}
	encryption, err := secured(c.HTTP)
	if err != nil {
		return err
	}
	listener, address, err := listen(c.HTTP.Listen)
	if err != nil {
		return err
	}
	n.address = address
	admin, err := adminsocket.Listen(adminsocket.Of(c.HTTP, o.Getenv))
	if err != nil {
		return errors.Join(err, closeListener(listener))
	}
	if err := n.join(ctx); err != nil {
		return errors.Join(err, closeListener(listener), closeListener(admin))
	}

	// The parts below run until their own context ends. The elections end first. While they end, the page still answers.
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	var wg sync.WaitGroup
	wg.Go(func() { n.notifier.watchdog(background, n.health) })
	wg.Go(func() { shrink(background, n.log) })
	wg.Go(func() { n.traces.Run(background) }) // runs to the end, because the last terms end with the elections
	wg.Go(func() { n.wardens.Fill(background) })
	wg.Go(func() { orphans.Adopt(background) })
	electing, stopElecting := context.WithCancel(ctx)
	defer stopElecting()
	var served error
	if listeners := existing(listener, admin); len(listeners) > 0 {
		server := status.New(n.serving(c.HTTP, encryption))
		wg.Go(func() {
			defer stopElecting() // if a listener fails, the daemon ends in order
			served = server.Serve(background, listeners...)
		})
	}

	n.log.Info("started", zap.String("version", o.Version), zap.String("redis", n.lockStores.Host()),
		zap.Int("jobs", len(c.Jobs)), zap.String("http", address))
	n.notifier.ready()
	if o.Ready != nil {
		o.Ready(address)
	}
	// This is sent when the shutdown begins, not when it is over, because jobs may take a while to end.
	context.AfterFunc(electing, func() { n.notifier.send("STOPPING=1") })
	wg.Go(func() { n.balancer.Run(electing) })
	wg.Go(func() { n.keepIdentity(electing) })
	ledger := n.candidacies[0].ledger // read here, because a reload changes the list
	wg.Go(func() { n.clock.Follow(electing, ledger, c.Election.AttemptTimeout) })
	err = n.campaign(electing)
	n.notifications.Close(background)
	stopBackground()
	wg.Wait()
	n.log.Info("stopped")
	return errors.Join(err, served)
}

// startedUp is the time after which the node's start counts as finished.
const startedUp = 2 * time.Second

// shrink waits until the node has started, and frees the memory that only the start has needed.
func shrink(ctx context.Context, log *zap.Logger) {
	select {
	case <-ctx.Done():
	case <-time.After(startedUp):
		if err := releaseStartUp(); err != nil {
			log.Debug("cannot return the memory that only the start needed", zap.Error(err))
		}
	}
}

// logWithin limits the time to log why the process dies. It is shorter than the margin between the hard stop and the end of the lease.
const logWithin = 50 * time.Millisecond

// die ends the process immediately. It logs the reason, but does not wait for a log that hangs.
func die(log *zap.Logger, reason string, exit func(code int)) {
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		log.Error("ending the process: a leader that cannot stop must die", zap.String("reason", reason))
		_ = log.Sync() // a terminal or pipe cannot be synced
	}()
	select {
	case <-logged:
	case <-time.After(logWithin):
	}
	exit(ExitCannotStop)
}

// listen binds the status page's address. For "off" it binds no address.
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

// leave removes the node from the election's list of nodes. If that fails, the node's entry in the list ends later.
func leave(ctx context.Context, lock site.NodeLock, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	_ = lock.Leave(ctx)
}

func closeListener(l net.Listener) error {
	if l == nil {
		return nil
	}
	return l.Close()
}

func closing(log *zap.Logger, what string, shut func() error) {
	if err := shut(); err != nil {
		log.Warn("closing "+what, zap.Error(err))
	}
}

// flushNames returns the names of the jobs that flush.
func flushNames(c config.Config) []string {
	c.Jobs = slices.DeleteFunc(slices.Clone(c.Jobs), config.Job.IsCommand)
	return jobNames(c)
}

func jobNames(c config.Config) []string {
	names := make([]string, len(c.Jobs))
	for i, j := range c.Jobs {
		names[i] = j.Name
	}
	return names
}
