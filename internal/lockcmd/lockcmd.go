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

// Why a command was not run under its locks, or not to its end.
var (
	// ErrNotHad: the locks were not had. Those that were are given back.
	ErrNotHad = errors.New("not had")
	// ErrRedisAway goes with ErrNotHad where that is the reason, not another holder.
	ErrRedisAway = errors.New("redis unavailable, or unfit to hold the lock")
	// ErrLockLost: a lock was lost, and the command was ended before another client
	// could have it.
	ErrLockLost = errors.New("lost")
	// ErrUsage: the names or options make no lock.
	ErrUsage = errors.New("invalid lock request")
)

// Interrupted is the error of a wait that a signal has ended.
type Interrupted struct{ Signal syscall.Signal }

func (i *Interrupted) Error() string { return fmt.Sprintf("interrupted by signal %d", int(i.Signal)) }

// warnWithin bounds the time of the warning before the process ends. It is below the margin
// between the hard stop and the end of the lease.
const warnWithin = 50 * time.Millisecond

// ExitLockLost is the exit code of a process whose command did not end in time
// when its lock was lost.
const ExitLockLost = site.ExitLockLost

// Forever is a wait without an end.
const Forever time.Duration = -1

// Options are a command, and the locks to run it under.
type Options struct {
	Names []string // of the locks: Redis keys; all are taken, or none
	// Slots, if not 0, makes a semaphore of the one name, with that many holders at most.
	Slots int
	// Wait is how long to wait for the locks; 0 asks once, [Forever] never gives up.
	Wait time.Duration
	// AtLeast is how long the locks are held, however soon the command ends: on hosts
	// whose clocks differ a short command would else run again a moment later.
	AtLeast time.Duration

	Command        []string
	Env            []string // for the command, beside the variables of its locks
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Leave does not kill the processes that the command leaves running in the background.
	Leave bool
	// Warden is this program's command line for [command.Spec].
	Warden []string
	// Signals end the wait; once the command runs they are passed on to it.
	Signals <-chan os.Signal

	Version string
	// Warn gets the faults, Note the events. The run may call both at any time.
	Warn, Note func(text string)
	// Exit ends the process at once. It is called if the command cannot be ended
	// before another client may have a lock.
	Exit func(code int)
}

// Run takes the locks, runs the command, and gives the locks back. While the
// command runs they are renewed; if one is lost, the command is ended before
// another client can have it. The error matches ErrNotHad, ErrLockLost, *Interrupted,
// ErrUsage, or one of package command.
//
// Every lock is an election of its own, and each one's work is the next one's
// campaign; the last one's work is the command. They are taken in the order of
// their names, so that two processes that want the same locks never wait for each
// other; whatever ends an outer term ends those within it first.
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
	wanted   []wantedLock   // all of them, sorted
	attempts []*lockAttempt // those to take, sorted

	passed chan os.Signal // on to the command
	told   chan struct{}  // closed by the first signal that ends the hold of AtLeast
	ready  *command.Ready // has begun before the command; may be nil
	giveUp context.CancelCauseFunc
	wg     sync.WaitGroup // of whatever runs beside

	beat    heartbeat.Beat // the locks are renewed together
	hear    chan struct{}  // closed when it is time to listen for hints
	hearing sync.Once

	mu     sync.Mutex
	begun  bool // the command has, or is about to
	ended  bool // the command has
	over   bool // it was given up before
	away   bool // a message said that Redis does not answer
	result command.Result
	err    error // of the command, or what ended it
}

// run takes the locks one after the other, runs the command, and gives them back.
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
		// Again, if a lock was lost while the next one was waited for.
		err = h.take(ctx, 0)
	}
	stop()
	h.wg.Wait()
	h.leave()
	return h.outcome(ctx, err)
}

// prepare has the warden begin while the locks are taken. The returned function ends a
// warden that was not needed.
func (h *lockRun) prepare() (dismiss func()) {
	if h.o.Wait == 0 {
		return func() {} // of many hosts all but one are refused at once
	}
	ready, err := command.Prepare(h.spec())
	if err != nil {
		return func() {} // the error says why
	}
	h.ready = ready
	return ready.Close
}

// spec is the command without the parts that depend on the locks.
func (h *lockRun) spec() command.Spec {
	return command.Spec{
		Path: h.path, Argv: h.o.Command,
		Stdin: h.o.Stdin, Stdout: h.o.Stdout, Stderr: h.o.Stderr,
		Warden: h.o.Warden, Grace: h.config.Election.Drain, Signals: h.passed, Leave: h.o.Leave, Terminal: true,
	}
}

// patience bounds the wait. Without any, every lock gets an attempt; it is given up
// by the answer.
func (h *lockRun) patience() time.Duration {
	if h.o.Wait > 0 {
		return h.o.Wait
	}
	return 2 * h.config.Election.AttemptTimeout * time.Duration(1+len(h.wanted))
}

// passSignals ends the wait by a signal, or passes it on to the command.
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

// ends says whether a signal ends a process that does not mind it.
func ends(s syscall.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

// asksForEnd says whether a signal can only mean the end. SIGHUP and SIGQUIT may mean something else to a command: to read
// its configuration again, or to print where it is.
func asksForEnd(s syscall.Signal) bool { return s == syscall.SIGINT || s == syscall.SIGTERM }

// stopWaiting gives up, unless the command has begun; it reports whether it has
// not. The first reason counts.
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

// execute runs the command: the work of the innermost lock.
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
		h.o.Note(fmt.Sprintf("the command has left %d processes behind; they were ended", result.Rest))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.result = result
	if errors.Is(err, command.ErrTooLate) {
		h.err = fmt.Errorf("the command was not begun since a lock was %w: %w", ErrLockLost, err)
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

// linger keeps the locks although the command has ended. A signal ends that, and a SIGINT or SIGTERM also if it came
// before: its sender wants the end of both.
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

// until is how long all of the locks that were taken are ours for certain.
func (h *lockRun) until() time.Duration {
	least := time.Duration(1<<63 - 1)
	for _, t := range h.attempts {
		least = min(least, t.untilHardStop())
	}
	return least
}

// outcome is what Run answers.
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

// die ends the process when the command outlives its lock: its end takes the
// command along.
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

// lost notes which lock's end has ended the command.
func (h *lockRun) lost(name string, cause error) {
	if cause == nil || errors.Is(cause, elector.ErrShuttingDown) {
		return // the lock around it has ended, or all is over
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.begun && h.result.Stopped {
		h.err = fmt.Errorf("lock %q was %w (%w): the command was ended (%v)", name, ErrLockLost, cause, h.result)
	}
}
