package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"baton/internal/command/warden"
)

// untilEvery is how often Run calls Until.
const untilEvery = 50 * time.Millisecond

// tellWithin is how long the warden may take to read an order. A warden that does not is stopped or gone, and its deadline is kept
// without us.
const tellWithin = 100 * time.Millisecond

// tryWithin is how long a process may take to apply settings in a trial.
const tryWithin = 10 * time.Second

// lastWords is how long to wait for the output when the warden has ended. No process is left then that could write, unless the warden was
// killed.
const lastWords = 2 * time.Second

// Ready is a guard and a warden that have begun and wait for their command: most commands begin sooner than these two.
type Ready struct {
	conn   net.Conn
	guard  *exec.Cmd
	joined sync.Once
	err    error // of the guard's end, once it is joined
}

// Prepare starts the two for a command whose streams, Warden and Leave are fixed. The caller must call [RunReady] or Close.
func Prepare(s Spec) (*Ready, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	r := &Ready{conn: ours, guard: &exec.Cmd{
		Path: s.Warden[0], Args: append([]string{warden.Name}, s.Warden[1:]...),
		Env: runtimeSettings(), Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr,
		ExtraFiles: []*os.File{theirs},
		// A group of its own: a signal to ours must not hit the warden.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		// Processes that a killed warden has left may keep the output open.
		WaitDelay: lastWords,
	}}
	if s.Leave {
		r.guard.WaitDelay = tellWithin // so may processes that were left on purpose
	}
	err = r.guard.Start()
	_ = theirs.Close() // the warden has its own
	if err != nil {
		_ = ours.Close() // no process has the other end
		return nil, fmt.Errorf("start its warden: %w", err)
	}
	return r, nil
}

// runtimeSettings is the part of our environment for the two: the variables of Go's runtime. The rest may hold secrets; the command's
// environment comes with the command.
func runtimeSettings() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return !slices.Contains([]string{"GODEBUG", "GOMAXPROCS", "GOMEMLIMIT", "GORACE", "GOTRACEBACK"}, name)
	})
}

// Alive reports whether the guard, which ends with its warden, has not ended. It may be stopped.
func (r *Ready) Alive() bool {
	var ended unix.Siginfo
	err := unix.Waitid(unix.P_PID, r.guard.Process.Pid, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && ended.Signo == 0
}

// left reports, once it is joined, whether the guard has ended of its own accord: without a report of a command there was none. If it was
// killed, it may have begun a command without a report.
func (r *Ready) left() bool { return r.err == nil }

// Close ends it, if it was not used.
func (r *Ready) Close() {
	_ = r.conn.Close()
	r.join()
}

// join waits for the guard's end, until no process is left if the warden was killed, and for the output to be copied. Only from then on
// the wait for the output has a bound.
func (r *Ready) join() {
	r.joined.Do(func() {
		r.wake() // a stopped one would not end
		r.err = r.guard.Wait()
	})
}

// wake continues both if they were stopped: the guard passes the signal on.
func (r *Ready) wake() { _ = r.guard.Process.Signal(syscall.SIGCONT) }

// run is [Run] for a command with the streams, Warden and Leave that it was prepared for.
func (r *Ready) run(ctx context.Context, s Spec) (Result, error) {
	defer r.conn.Close() // the warden has sent all of its reports
	group := 0
	if s.Terminal {
		group = terminalGroup()
	}
	if s.Env == nil {
		s.Env = os.Environ()
	}
	r.wake()
	run := running{spec: s, conn: r.conn, shared: group != 0}
	run.told = run.until()
	r.begin(ctx, warden.Order{Setup: &warden.Setup{
		Path: s.Path, Argv: s.Argv, Env: s.Env, Dir: s.Dir, Grace: s.Grace, Drain: s.Drain, Leave: s.Leave, Group: group,
		StopSignal: int(s.StopSignal), Settings: s.Settings,
	}, Until: run.told})
	result, err := run.attend(ctx)
	_ = r.conn.Close()
	r.join()
	var status *exec.ExitError
	if err == nil && !errors.As(r.err, &status) && !errors.Is(r.err, exec.ErrWaitDelay) {
		err = r.err
	}
	if err != nil {
		return result, fmt.Errorf("run %s: %w", s.Argv[0], err)
	}
	return result, nil
}

// begin gives the first order. When hundreds start at once, a time limit could be over before the writing begins, so there is none before
// ctx ends.
func (r *Ready) begin(ctx context.Context, first warden.Order) {
	limited := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(limited)
		_ = r.conn.SetWriteDeadline(time.Now().Add(lastWords))
	})
	_ = first.Write(r.conn) // if the warden does not read it, there will be no report either
	if !stop() {
		<-limited
	}
}

// running is a command that runs, as Run sees it.
type running struct {
	spec   Spec
	conn   net.Conn
	pid    int
	told   warden.Instant // the deadline that the warden knows
	shared bool           // the command is in our own group, the terminal's
}

// attend passes orders on until the warden reports the end.
func (r *running) attend(ctx context.Context) (Result, error) {
	reports := warden.Reports(r.conn)
	ticker := time.NewTicker(untilEvery)
	defer ticker.Stop()
	done, signals := ctx.Done(), (<-chan os.Signal)(nil)
	for {
		select {
		case <-done:
			done = nil
			r.tell(warden.Order{Stop: warden.Now().Add(r.spec.Grace)})
		case s := <-signals:
			if number, ok := s.(syscall.Signal); ok && !(r.shared && byTerminal(number)) {
				r.tell(warden.Order{Signal: int(number)})
			}
		case <-ticker.C:
			if u := r.until(); u.Sub(r.told).Abs() > time.Millisecond {
				r.tell(warden.Order{Until: u})
			}
		case m, ok := <-reports:
			switch {
			case !ok:
				return Result{}, r.forsaken()
			case syscall.Errno(m.Errno) == warden.TooLate:
				return Result{}, ErrTooLate
			case m.Errno != 0 && m.Step != warden.StepBegin:
				return Result{}, settingError(m.Step, syscall.Errno(m.Errno))
			case m.Errno != 0:
				return Result{}, cannotStart(r.spec, syscall.Errno(m.Errno))
			case m.Result != nil:
				return Result{Code: m.Result.Code, Signal: syscall.Signal(m.Result.Signal),
					Stopped: m.Result.Stopped, Rest: m.Result.Rest}, nil
			}
			// From now on there is a process to pass signals to.
			r.pid, signals = m.Pid, r.spec.Signals
			if r.spec.Begun != nil {
				r.spec.Begun()
			}
		}
	}
}

// Try applies settings in a process of its own, and ends it: the error names the setting that the kernel refuses. program is the Warden
// of a [Spec].
func Try(program []string, s Settings) error {
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer ours.Close() // everything is read by then
	launcher := &exec.Cmd{
		Path: program[0], Args: []string{warden.LauncherName, warden.LaunchArgument},
		Env: runtimeSettings(), ExtraFiles: []*os.File{theirs},
	}
	err = launcher.Start()
	_ = theirs.Close() // it has its own
	if err != nil {
		return fmt.Errorf("try the settings of a command: %w", err)
	}
	defer launcher.Wait() //nolint:errcheck // it has reported its outcome
	_ = ours.SetDeadline(time.Now().Add(tryWithin))
	if err := (warden.Order{Setup: &warden.Setup{Argv: []string{""}, Settings: s}}).Write(ours); err != nil {
		return errors.Join(fmt.Errorf("try the settings of a command: %w", err), launcher.Process.Kill())
	}
	said, err := io.ReadAll(ours)
	if err != nil {
		return errors.Join(fmt.Errorf("try the settings of a command: %w", err), launcher.Process.Kill())
	}
	step, err := warden.ReadOutcome(string(said))
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return cmp.Or(settingError(step, errno), err)
	}
	return err
}

func (r *running) until() warden.Instant {
	if r.spec.Until == nil {
		return 0
	}
	return warden.Now().Add(r.spec.Until())
}

func (r *running) tell(o warden.Order) {
	if o.Until != 0 {
		r.told = o.Until
	}
	_ = r.conn.SetWriteDeadline(time.Now().Add(tellWithin))
	_ = o.Write(r.conn) // if the warden does not read it, there will be no report either
}

// forsaken is the error of a command whose warden is gone. Its guard kills all remaining processes; if the guard is gone, too, only the
// process group can still be found.
func (r *running) forsaken() error {
	if r.pid == 0 {
		return errNotBegun
	}
	if !r.shared {
		_ = syscall.Kill(-r.pid, syscall.SIGKILL)
	}
	return errors.New("its warden was killed, and the command with it")
}

// byTerminal reports whether a signal comes from a terminal's key, which reaches the command directly if it is in the terminal's group.
// Only the group in the foreground gets those; a signal to a group in the background was meant for us.
func byTerminal(s syscall.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	foreground := 0
	onTerminal(func(fd int) { foreground, _ = unix.IoctlGetInt(fd, unix.TIOCGPGRP) }) // 0 is no group
	return foreground == unix.Getpgrp()
}

// terminalGroup is our process group if our session has a terminal, else 0: the command then gets a group of its own. The standard
// streams do not decide it: a program reads a password from /dev/tty, and a group in the background is stopped there.
func terminalGroup() int {
	group := 0
	onTerminal(func(int) { group = unix.Getpgrp() })
	return group
}

// onTerminal calls do with the terminal of our session, if there is one.
func onTerminal(do func(fd int)) {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	do(fd)
	_ = unix.Close(fd) // nothing was written
}

func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket for its warden: %w", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "warden")
	theirs := os.NewFile(uintptr(fds[1]), "warden")
	conn, err := net.FileConn(ours) // a duplicate
	if err := errors.Join(err, ours.Close()); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn, theirs, nil
}
