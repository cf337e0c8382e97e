package warden

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// socket is the descriptor through which baton and the warden communicate.
const socket = 3

// These are the names of the two processes, as ps and pkill see them. The names differ from baton's name, because otherwise killing
// baton by name would also kill the processes that end its commands. For the same reason the command's command line comes through the
// socket.
const (
	Name       = "guard" // of the process that baton starts
	wardenName = "warden"
)

// Each of these is the only argument in a command line: the first in a guard's, the second in a warden's.
const (
	guardArgument = "warden" // baton calls the guard and the warden together "the warden"
	watchArgument = "watch"
)

// killAgain is the pause between two sweeps of SIGKILL, because a forking process may have escaped one sweep.
const killAgain = 5 * time.Millisecond

// A process that baton has started as a warden does nothing else from its beginning to its end.
func init() { //nolint:gochecknoinits // main comes too late: see doc.go
	if len(os.Args) != 2 || !calledByBaton() {
		return
	}
	switch os.Args[1] {
	case guardArgument:
		os.Exit(guard())
	case watchArgument:
		os.Exit(watch())
	case LaunchArgument:
		os.Exit(launch())
	}
}

// watch does the whole work of the warden.
func watch() int {
	rename(wardenName)
	// The kernel kills the command when the thread that forked the command ends, not when the process ends.
	runtime.LockOSThread()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn()...)
	keepDescriptors()
	if err := becomeReaper(); err != nil {
		_, _ = os.Stderr.WriteString("baton: become the reaper of the command's orphans: " + err.Error() + "\n")
		return 1
	}
	conn := os.NewFile(socket, "baton")
	orders := receive(conn, parseOrder)
	first, ok := await(orders, signals)
	if !ok || first.Setup == nil {
		return 0 // the parent is gone: there is no work, and nothing to report
	}
	w := warden{setup: *first.Setup, drain: first.Setup.Grace}
	if d := w.setup.Drain; d > 0 {
		w.drain = min(w.drain, d)
	}
	w.slack = min(max(w.drain/4, 50*time.Millisecond), 500*time.Millisecond)
	w.extend(first.Until)
	if !w.inTime(orders) {
		_ = Report{Errno: int(TooLate)}.write(conn) // a closed socket needs no report
		return 0
	}
	if w.setup.Settings.limitsProcesses() {
		takePrecedence()
	}
	var err error
	var step Step
	if w.pid, step, err = w.start(); err != nil {
		_ = Report{Errno: int(errnoOf(err)), Step: step}.write(conn) // a closed socket needs no report
		return 0
	}
	done := make(chan struct{})
	go func() { // not on the first thread, which has no precedence
		defer close(done)
		_ = Report{Pid: w.pid}.write(conn)
		w.attend(orders, signals)
		_ = Report{Result: &w.result}.write(conn)
	}()
	<-done
	return 0
}

// await waits for the first order, which may take long to come. Until then a signal that ends a process is meant for the warden.
func await(orders <-chan Order, signals <-chan os.Signal) (Order, bool) {
	for {
		select {
		case o, ok := <-orders:
			return o, ok
		case s := <-signals:
			if number, ok := s.(syscall.Signal); ok && ends(number) {
				return Order{}, false
			}
		}
	}
}

// passedOn returns the signals that are passed on to the command. It leaves out ignored signals, because nohup(1) ignores signals on
// purpose. The process that forwards the signals catches them, so that the signals do not end that process.
func passedOn() (passed []os.Signal) {
	for _, s := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGWINCH,
	} {
		if !signal.Ignored(s) {
			passed = append(passed, s)
		}
	}
	return passed
}

// warden watches over one command.
type warden struct {
	setup Setup
	drain time.Duration // the part of the time left until all processes must be dead
	slack time.Duration // between SIGKILL and the moment when all processes must be dead
	waker waker

	pid    int
	ended  bool // the command itself has ended; its processes may be left
	result Result
	until  Instant // all processes must be dead
	killAt Instant // the grace of a stop is over
	swept  Instant // SIGKILL was last sent to all processes
	sweeper
}

// attend returns when there is no process left to watch.
func (w *warden) attend(orders <-chan Order, signals <-chan os.Signal) {
	ended := reap(w.pid)
	for {
		timer := time.NewTimer(w.untilNext())
		select {
		case o, ok := <-orders:
			if !ok { // the parent is dead
				orders = nil
				w.stop(Now().Add(w.setup.Grace))
				break
			}
			w.obey(o)
		case s := <-signals:
			if number, ok := s.(syscall.Signal); ok && forwardable(number) {
				w.signal(number)
			}
		case status, ok := <-ended:
			if !ok || w.exited(status) {
				timer.Stop()
				return
			}
		case <-timer.C:
		}
		timer.Stop()
		w.act()
	}
}

func (w *warden) obey(o Order) {
	if o.Until != 0 {
		w.extend(o.Until)
	}
	if o.Signal != 0 {
		w.signal(syscall.Signal(o.Signal))
		if ends(syscall.Signal(o.Signal)) {
			w.signal(syscall.SIGCONT) // as timeout(1) does, because a stopped process does not receive the other signal
		}
	}
	if o.Stop != 0 {
		w.stop(o.Stop)
	}
}

// extend moves the deadline, and the time of the timer.
func (w *warden) extend(until Instant) {
	if until != 0 {
		w.until = until
		w.waker.set(w.latest())
	}
}

// stop sends the command's stop signal once, and sets the time of SIGKILL.
func (w *warden) stop(killAt Instant) {
	if w.killAt != 0 {
		w.killAt = earlier(w.killAt, killAt)
		return
	}
	w.killAt = killAt
	if !w.ended {
		w.result.Stopped = true
		w.signal(w.setup.stopSignal())
		w.signal(syscall.SIGCONT) // a stopped process does not receive the other signal
	}
}

// kill returns the time at which SIGKILL is sent; 0 means never.
func (w *warden) kill() Instant {
	if w.until == 0 {
		return w.killAt
	}
	return earlier(w.killAt, w.until.Add(-w.slack))
}

// latest returns the time when SIGTERM is sent without an order to stop, because baton, which should have sent the order, is stopped or
// hangs.
func (w *warden) latest() Instant { return w.until.Add(-w.slack - w.drain/2) }

// last returns the time of the method latest if SIGTERM may still have to be sent, otherwise 0.
func (w *warden) last() Instant {
	if w.until == 0 || w.killAt != 0 {
		return 0
	}
	return w.latest()
}

// untilNext returns the time until the next step is due.
func (w *warden) untilNext() time.Duration {
	next := earlier(w.kill(), w.last())
	if next == 0 {
		return time.Hour
	}
	return max(next.Sub(Now()), killAgain)
}

// act takes the steps that are due.
func (w *warden) act() {
	t := Now()
	if last := w.last(); last != 0 && t >= last {
		w.stop(w.until)
	}
	if kill := w.kill(); kill != 0 && t >= kill && t.Sub(w.swept) >= killAgain {
		w.swept = t
		w.sweep()
	}
}

// sweep kills all processes that can be found.
func (w *warden) sweep() {
	if !w.ended && w.setup.Group == 0 {
		_ = syscall.Kill(-w.pid, syscall.SIGKILL) // the whole group at once, before it can fork
	}
	w.sweeper.sweep()
}

// exited records how the command ended. It reports whether there is no work left.
func (w *warden) exited(status syscall.WaitStatus) bool {
	w.ended = true
	if status.Signaled() {
		w.result.Signal = int(status.Signal())
	} else {
		w.result.Code = status.ExitStatus()
	}
	if w.setup.Leave && !w.result.Stopped {
		return true
	}
	if childless() { // this is usual, and saves the search through every process
		return true
	}
	if rest := descendants(os.Getpid()); len(rest) > 0 {
		w.result.Rest = len(rest)
		signalEach(rest, syscall.SIGTERM)
		signalEach(rest, syscall.SIGCONT)
		w.killAt = earlier(w.killAt, Now().Add(w.setup.Grace))
	}
	return false // reap reports when no process is left
}

// signal sends a signal to the command: to its group if it has its own group, otherwise to all processes that it has started.
func (w *warden) signal(s syscall.Signal) {
	if w.setup.Group == 0 && !w.ended {
		_ = syscall.Kill(-w.pid, s) // the process may have ended
		return
	}
	signalEach(descendants(os.Getpid()), s)
}

// ends reports whether a signal ends a process that does not handle the signal. Ending the process is then most likely the sender's
// intention.
func ends(s syscall.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

// forwardable reports whether a signal is meant for the command, and not for the process that received the signal.
func forwardable(s syscall.Signal) bool {
	switch s {
	case syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGTSTP, syscall.SIGCONT:
		return false
	}
	return true
}

// TooLate is the errno for a command that had no time left when its turn came, because the warden or baton had been stopped. No exec fails
// with this errno.
const TooLate = syscall.ETIME

// inTime reports whether the command may begin. Waiting orders may have moved the deadline, because baton sends an order every 50 ms.
func (w *warden) inTime(orders <-chan Order) bool {
	const another = 100 * time.Millisecond
	patience := time.After(another)
	for kill := w.kill(); kill != 0 && Now() >= kill; kill = w.kill() {
		select {
		case o, ok := <-orders:
			if !ok || o.Stop != 0 {
				return false
			}
			w.extend(o.Until)
		case <-patience:
			return false
		}
	}
	return true
}

// start starts the command, with this process' standard streams.
func (w *warden) start() (int, Step, error) {
	s := w.setup
	if s.Dir != "" {
		if err := syscall.Chdir(s.Dir); err != nil {
			return 0, StepBegin, err
		}
	}
	attr := &syscall.ProcAttr{
		Env: s.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pgid: s.Group, Pdeathsig: syscall.SIGKILL},
	}
	if !s.Settings.Empty() || lends() {
		return w.launched(attr)
	}
	pid, err := syscall.ForkExec(s.Path, s.Argv, attr)
	if errors.Is(err, syscall.ENOEXEC) && isText(s.Path) { // a script that does not name its shell
		pid, err = syscall.ForkExec("/bin/sh", append([]string{"sh", s.Path}, s.Argv[1:]...), attr)
	}
	return pid, StepBegin, err
}

func errnoOf(err error) syscall.Errno {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return errno
	}
	return syscall.EINVAL
}

// isText distinguishes a script from a program of another architecture, as shells do: it looks for a NUL byte at the beginning.
func isText(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() // the file was only read
	head := make([]byte, 80)
	n, _ := f.Read(head)         // an empty file is a script
	for _, b := range head[:n] { //nolint:modernize // package slices is not for a process that begins before main
		if b == 0 {
			return false
		}
	}
	return true
}
