package lockcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"baton/internal/command"
	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/elector"
	"baton/internal/heartbeat"
)

// These errors say why a command was not run under its locks, or was ended early.
var (
	// ErrNotHad means that not all locks were acquired. The locks that were acquired are given back.
	ErrNotHad = errors.New("not acquired")
	// ErrRedisAway is joined with ErrNotHad if Redis is the reason, not another holder.
	ErrRedisAway = errors.New("redis unavailable, or unfit to hold the lock")
	// ErrLockLost means that a lock was lost, and the command was ended before another client could have it.
	ErrLockLost = errors.New("lost")
	// ErrUsage means that the names or options are invalid for a lock.
	ErrUsage = errors.New("invalid lock request")
)

// Interrupted is the error of a wait for locks that was ended by a signal.
type Interrupted struct{ Signal syscall.Signal }

func (i *Interrupted) Error() string { return fmt.Sprintf("interrupted by signal %d", int(i.Signal)) }

// warnWithin limits the time for writing a warning just before this process ends itself. It is shorter than the margin between the hard
// stop and the end of the lease.
const warnWithin = 50 * time.Millisecond

// ExitLockLost is the exit code of a process whose command did not end in time
// when its lock was lost.
const ExitLockLost = site.ExitLockLost

// Forever is a value of Options.Wait: the wait for the locks has no time limit.
const Forever time.Duration = -1

// Options contains a command, and the locks under which the command runs.
type Options struct {
	Names []string // of the locks: Redis keys; all are taken, or none
	// Slots, if not 0, makes a semaphore of the only name. At most this many clients hold the semaphore at a time.
	Slots int
	// Wait is how long to wait for the locks; 0 means to ask once, and [Forever] means to wait without a limit.
	Wait time.Duration
	// AtLeast is the minimum time that the locks are held, even if the command ends earlier. Without AtLeast a short command would run
	// again on another host whose clock is a moment behind.
	AtLeast time.Duration

	Command        []string
	Env            []string // for the command, in addition to the variables of its locks
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Leave means that processes that the command leaves running in the background are not killed.
	Leave bool
	// Warden is this program's command line for [command.Spec].
	Warden []string
	// Signals end the wait for the locks. While the command runs, they are passed on to the command.
	Signals <-chan os.Signal

	Version string
	// Warn receives the faults, and Note receives the events. Run may call both at any time.
	Warn, Note func(text string)
	// Exit ends the process immediately. It is called if the command cannot be ended before another client may have a lock.
	Exit func(code int)
}

// Run takes the locks, runs the command, and gives the locks back. While the command runs, the locks are renewed. If a lock is lost,
// the command is ended before another client can have the lock. The error matches ErrNotHad, ErrLockLost, *Interrupted, ErrUsage, or an
// error of package command.
//
// Every lock is an election of its own. The work of each election is the campaign for the next lock, and the work of the last election
// is the command. The locks are taken in the order of their names, so that two processes that want the same locks never wait for each
// other. When an outer term ends, the terms within it end first.
func Run(ctx context.Context, c config.Config, o Options) (command.Result, error) {
	path, err := command.Find(o.Command[0])
	if err != nil {
		return command.Result{}, err
	}
	wanted, err := plan(o)
	if err != nil {
		return command.Result{}, err
	}
	locks, err := site.OpenLocks(c)
	if err != nil {
		return command.Result{}, err
	}
	h := &lockRun{
		config: c, o: o, path: path, locks: locks, wanted: wanted,
		passed: make(chan os.Signal, 16), told: make(chan struct{}), hear: make(chan struct{}),
	}
	for _, w := range wanted {
		if w.outer == nil {
			t, err := newLockAttempt(h, w)
			if err != nil {
				return command.Result{}, errors.Join(err, locks.Close())
			}
			h.attempts = append(h.attempts, t)
		}
	}
	result, err := h.run(ctx)
	return result, errors.Join(err, locks.Close())
}

// lockRun is one call of Run.
type lockRun struct {
	config   config.Config
	o        Options
	path     string // the command's file
	locks    *site.Locks
	wanted   []wantedLock   // all locks, sorted
	attempts []*lockAttempt // the locks to take, sorted

	passed chan os.Signal // signals that are passed on to the command
	told   chan struct{}  // closed by the first signal that ends the hold of AtLeast
	ready  *command.Ready // the warden's process, started before the command; may be nil
	giveUp context.CancelCauseFunc
	wg     sync.WaitGroup // for all goroutines of this call

	beat    heartbeat.Beat // renews the locks together
	hear    chan struct{}  // closed when it is time to listen for hints
	hearing sync.Once

	mu     sync.Mutex
	begun  bool // the command has begun, or is about to
	ended  bool // the command has ended
	over   bool // the run was given up before the command began
	away   bool // a message said that Redis does not answer
	result command.Result
	err    error // of the command, or the reason that ended the command
}

// run takes the locks one after the other, runs the command, and gives the locks back.
func (h *lockRun) run(ctx context.Context) (command.Result, error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	h.giveUp = giveUp
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.wg.Go(func() { h.passSignals(beside) })
	h.wg.Go(func() { h.listen(beside) })
	if h.o.Wait >= 0 {
		timer := time.AfterFunc(h.patience(), func() {
			h.stopWaiting(fmt.Errorf("within %v", h.o.Wait))
		})
		defer timer.Stop()
	}

	dismiss := h.prepare()
	defer dismiss()
	err := h.confirmOuter(ctx)
	for err == nil && !h.hasBegun() && ctx.Err() == nil {
		// take is called again if a lock was lost during the wait for the next lock.
		err = h.take(ctx, 0)
	}
	stop()
	h.wg.Wait()
	h.leave()
	return h.outcome(ctx, err)
}

// prepare starts the command's warden while the locks are being taken. The warden is a process that kills the command if the lease ends. If
// Run does not wait for locks, prepare starts no warden. The returned function ends a warden that was not needed.
func (h *lockRun) prepare() (dismiss func()) {
	if h.o.Wait == 0 {
		return func() {} // of many hosts, all but one are refused at once and need no warden
	}
	ready, err := command.Prepare(h.spec())
	if err != nil {
		return func() {} // the error of the command says why
	}
	h.ready = ready
	return ready.Close
}

// spec returns the command without the parts that depend on the locks.
func (h *lockRun) spec() command.Spec {
	return command.Spec{
		Path: h.path, Argv: h.o.Command,
		Stdin: h.o.Stdin, Stdout: h.o.Stdout, Stderr: h.o.Stderr,
		Warden: h.o.Warden, Grace: h.config.Election.Drain, Signals: h.passed, Leave: h.o.Leave, Terminal: true,
	}
}

// patience returns how long to wait for the locks. If Options.Wait is 0, this time suffices for one attempt at every lock, and the answers
// to these attempts end the wait earlier.
func (h *lockRun) patience() time.Duration {
	if h.o.Wait > 0 {
		return h.o.Wait
	}
	return 2 * h.config.Election.AttemptTimeout * time.Duration(1+len(h.wanted))
}

// passSignals handles the signals that arrive. A signal ends the wait for the locks, or is forwarded to the command.
func (h *lockRun) passSignals(ctx context.Context) {
	var told sync.Once
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-h.o.Signals:
			if number, ok := s.(syscall.Signal); ok && ends(number) {
				if h.stopWaiting(&Interrupted{number}) {
					continue
				}
				if asksForEnd(number) || h.hasEnded() {
					told.Do(func() { close(h.told) })
				}
			}
			select {
			case h.passed <- s:
			default: // the command is not listening: it has not begun, or is being ended
			}
		}
	}
}

// ends reports whether the signal ends a process that does not handle signals.
func ends(s syscall.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

// asksForEnd reports whether a signal can only mean that the command must end. SIGHUP and SIGQUIT may have another meaning for a
// command: read the configuration again, or print the state.
func asksForEnd(s syscall.Signal) bool { return s == syscall.SIGINT || s == syscall.SIGTERM }

// stopWaiting ends the wait for the locks, unless the command has begun. It returns true if the command has not begun. Of several reasons,
// only the first is recorded.
func (h *lockRun) stopWaiting(why error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.begun {
		return false
	}
	h.over = true
	h.giveUp(why)
	return true
}

func (h *lockRun) hasBegun() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.begun
}

// execute runs the command, which is the work of the innermost lock.
func (h *lockRun) execute(ctx context.Context) {
	h.mu.Lock()
	if h.over || h.begun || ctx.Err() != nil || h.until() <= h.config.Election.Drain {
		h.mu.Unlock()
		return
	}
	h.begun = true
	h.mu.Unlock()
	spec := h.spec()
	spec.Env = h.environment()
	if len(h.attempts) > 0 {
		spec.Until = h.until
	}
	began := time.Now()
	result, err := command.RunReady(ctx, h.ready, spec)
	h.linger(ctx, h.o.AtLeast-time.Since(began))
	if result.Rest > 0 {
		h.o.Note(fmt.Sprintf("the command left %d processes behind, and baton ended them", result.Rest))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.result = result
	if errors.Is(err, command.ErrTooLate) {
		h.err = fmt.Errorf("the command was not started because a lock was %w: %w", ErrLockLost, err)
	} else if err != nil {
		h.err = err
	} else if result.Stopped && h.err == nil {
		h.err = fmt.Errorf("the command was ended: a lock was %w (%v)", ErrLockLost, result)
	}
}

func (h *lockRun) hasEnded() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// linger keeps the locks for the duration d after the command has ended. A signal during this time ends it. A SIGINT or SIGTERM also
// prevents it if the signal came while the command ran, because the sender wants to end both the command and the hold of the locks.
func (h *lockRun) linger(ctx context.Context, d time.Duration) {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(d):
	case <-h.told:
	}
}

// The method until returns how long this process certainly still holds all taken locks.
func (h *lockRun) until() time.Duration {
	least := time.Duration(1<<63 - 1)
	for _, t := range h.attempts {
		least = min(least, t.untilHardStop())
	}
	return least
}

// outcome returns the result of Run.
func (h *lockRun) outcome(ctx context.Context, err error) (command.Result, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil:
		return h.result, err
	case h.begun:
		return h.result, h.err
	}
	why := context.Cause(ctx)
	if interrupted, ok := errors.AsType[*Interrupted](why); ok {
		return h.result, interrupted
	}
	if ctx.Err() == nil || why == nil || errors.Is(why, context.Canceled) {
		return h.result, fmt.Errorf("%s: %w", h.names(), ErrNotHad)
	}
	for _, t := range h.attempts {
		if reason := t.obstacle(); reason != nil {
			return h.result, fmt.Errorf("lock %q was %w %w: %w", t.name, ErrNotHad, why, reason)
		}
	}
	return h.result, fmt.Errorf("%s: %w %w", h.names(), ErrNotHad, why)
}

func (h *lockRun) names() string {
	if len(h.o.Names) == 1 {
		return fmt.Sprintf("lock %q", h.o.Names[0])
	}
	return fmt.Sprintf("locks %q", h.o.Names)
}

// die ends this process because the command has not ended in time after its lock was lost. The end of the process also ends the command.
func (h *lockRun) die(reason string) {
	warned := make(chan struct{})
	go func() {
		defer close(warned)
		h.o.Warn("ending: " + reason)
	}()
	select {
	case <-warned:
	case <-time.After(warnWithin):
	}
	h.o.Exit(site.ExitLockLost)
}

// lost records which lock was lost, so that the command was ended.
func (h *lockRun) lost(name string, cause error) {
	if cause == nil || errors.Is(cause, elector.ErrShuttingDown) {
		return // an outer lock has ended, or the run is over
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.begun && h.result.Stopped {
		h.err = fmt.Errorf("lock %q was %w (%w): the command was ended (%v)", name, ErrLockLost, cause, h.result)
	}
}
