package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// wardenSocket is the descriptor by which Run and the warden talk.
const wardenSocket = 3

// killAgain is the pause between two sweeps of SIGKILL: what forks may have
// slipped through one.
const killAgain = 5 * time.Millisecond

// Warden is the other half of [Run]: the whole work of the process that Run has
// started, with the command line of the command. signals are those that somebody
// sends to the warden itself: all that the process can catch should come, so that
// none ends it.
func Warden(argv []string, signals <-chan os.Signal) error {
	// The kernel kills the command when the thread that forked it ends, not the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	kind, err := unix.GetsockoptInt(wardenSocket, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_STREAM || len(argv) == 0 {
		return errors.New("this is no command to be called by hand: baton starts it beside a command that it runs")
	}
	if err := unix.CloseRange(wardenSocket, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		unix.CloseOnExec(wardenSocket) // an old kernel; the rest is the caller's
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper of the command's orphans: %w", err)
	}
	conn := os.NewFile(wardenSocket, "warden")
	orders := receive[order](conn)
	first, ok := <-orders
	if !ok || first.Setup == nil {
		return nil // whoever started us is gone: there is nothing to do, and nobody to tell
	}
	w := warden{setup: *first.Setup, reports: json.NewEncoder(conn)}
	w.slack = min(max(w.setup.Grace/4, 50*time.Millisecond), 500*time.Millisecond)
	w.extend(first.Until)
	if w.pid, err = start(w.setup, argv); err != nil {
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			errno = syscall.EINVAL
		}
		_ = w.reports.Encode(report{Errno: int(errno)})
		return nil
	}
	_ = w.reports.Encode(report{Pid: w.pid})
	w.attend(orders, signals)
	_ = w.reports.Encode(report{Result: &w.result})
	return nil
}

// warden watches over one command.
type warden struct {
	setup   setup
	slack   time.Duration // between SIGKILL and the moment at which all must be dead
	reports *json.Encoder
	waker   waker

	pid    int
	ended  bool // the command itself; something of it may be left
	result Result
	until  instant // everything must be dead
	killAt instant // a stop's grace is over
	swept  instant // SIGKILL was last sent to all
}

// attend returns when there is nothing left to watch over.
func (w *warden) attend(orders <-chan order, signals <-chan os.Signal) {
	exits := reap()
	for {
		timer := time.NewTimer(w.untilNext())
		select {
		case o, ok := <-orders:
			if !ok { // whoever told us what to do is dead
				orders = nil
				w.stop(now().add(w.setup.Grace))
				break
			}
			w.obey(o)
		case s := <-signals:
			if number, ok := s.(syscall.Signal); ok && forwardable(number) {
				w.signal(number)
			}
		case e, ok := <-exits:
			if !ok || w.exited(e) {
				timer.Stop()
				return
			}
		case <-timer.C:
		}
		timer.Stop()
		w.act()
	}
}

func (w *warden) obey(o order) {
	if o.Until != 0 {
		w.extend(o.Until)
	}
	if o.Signal != 0 {
		w.signal(syscall.Signal(o.Signal))
		if ends(syscall.Signal(o.Signal)) {
			w.signal(syscall.SIGCONT) // as timeout(1) does: a stopped process does not hear the other
		}
	}
	if o.Stop != 0 {
		w.stop(o.Stop)
	}
}

// extend moves the deadline, and with it when we must be awake.
func (w *warden) extend(until instant) {
	if until != 0 {
		w.until = until
		w.waker.set(w.latest())
	}
}

// stop sends SIGTERM, once, and fixes when SIGKILL follows.
func (w *warden) stop(killAt instant) {
	if w.killAt != 0 {
		w.killAt = earlier(w.killAt, killAt)
		return
	}
	w.killAt = killAt
	if !w.ended {
		w.result.Stopped = true
		w.signal(syscall.SIGTERM)
		w.signal(syscall.SIGCONT) // a stopped process does not hear the other
	}
}

// kill is when SIGKILL comes; 0 is never.
func (w *warden) kill() instant {
	if w.until == 0 {
		return w.killAt
	}
	return earlier(w.killAt, w.until.add(-w.slack))
}

// latest is when SIGTERM comes although nobody has told us to: who should have is
// stopped, or hangs.
func (w *warden) latest() instant { return w.until.add(-w.slack - w.setup.Grace/2) }

// last is latest if that is still to come, else 0.
func (w *warden) last() instant {
	if w.until == 0 || w.killAt != 0 {
		return 0
	}
	return w.latest()
}

// untilNext is how long there is nothing to do.
func (w *warden) untilNext() time.Duration {
	next := earlier(w.kill(), w.last())
	if next == 0 {
		return time.Hour
	}
	return max(next.sub(now()), killAgain)
}

// act does what is due.
func (w *warden) act() {
	t := now()
	if last := w.last(); last != 0 && t >= last {
		w.stop(w.until)
	}
	if kill := w.kill(); kill != 0 && t >= kill && t.sub(w.swept) >= killAgain {
		w.swept = t
		if !w.ended && w.setup.Group == 0 {
			_ = syscall.Kill(-w.pid, syscall.SIGKILL) // all of the group at once, before it can fork
		}
		signalEach(descendants(os.Getpid()), syscall.SIGKILL)
	}
}

// exited notes who ended. It reports whether there is nothing left to do.
func (w *warden) exited(e exit) bool {
	if e.pid != w.pid || w.ended {
		return false
	}
	w.ended = true
	if e.status.Signaled() {
		w.result.Signal = e.status.Signal()
	} else {
		w.result.Code = e.status.ExitStatus()
	}
	if w.setup.Leave && !w.result.Stopped {
		return true
	}
	if rest := descendants(os.Getpid()); len(rest) > 0 {
		w.result.Rest = len(rest)
		signalEach(rest, syscall.SIGTERM)
		signalEach(rest, syscall.SIGCONT)
		w.killAt = earlier(w.killAt, now().add(w.setup.Grace))
	}
	return false // reap says when nothing is left
}

// signal sends a signal to the command: to its group if it has one of its own, else
// to all that it has started.
func (w *warden) signal(s syscall.Signal) {
	if w.setup.Group == 0 && !w.ended {
		_ = syscall.Kill(-w.pid, s) // it may have ended
		return
	}
	signalEach(descendants(os.Getpid()), s)
}

// ends says whether a signal ends a process that does not mind it, as whoever sent
// it most likely wants.
func ends(s syscall.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

// forwardable are the signals that say something to the command, not to the
// process that they were sent to.
func forwardable(s syscall.Signal) bool {
	switch s {
	case syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGTSTP, syscall.SIGCONT:
		return false
	}
	return true
}

// start starts the command, with this process' environment and standard streams.
func start(s setup, argv []string) (int, error) {
	attr := &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pgid: s.Group, Pdeathsig: syscall.SIGKILL},
	}
	pid, err := syscall.ForkExec(s.Path, argv, attr)
	if errors.Is(err, syscall.ENOEXEC) { // a script that does not name its shell
		pid, err = syscall.ForkExec("/bin/sh", append([]string{"sh", s.Path}, argv[1:]...), attr)
	}
	return pid, err
}

// exit is a child that has ended.
type exit struct {
	pid    int
	status unix.WaitStatus
}

// reap waits for every child, also those that were orphaned below, and closes when
// there is none left.
func reap() <-chan exit {
	exits := make(chan exit)
	go func() {
		defer close(exits)
		for {
			var e exit
			var err error
			e.pid, err = unix.Wait4(-1, &e.status, unix.WALL, nil)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return
			}
			exits <- e
		}
	}()
	return exits
}
