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

	"baton/internal/command/orphans"
	"baton/internal/command/warden"
)

// untilEvery is the pause between two calls of Until.
const untilEvery = 50 * time.Millisecond

// tellWithin is the maximum time that the warden may take to read an order. A slower warden is stopped or has ended, and the deadline is
// enforced without this process.
const tellWithin = 100 * time.Millisecond

// tryWithin is the maximum time that a process may take to apply settings in a trial.
const tryWithin = 10 * time.Second

// lastWords is the time to wait for the output after the warden has ended. No process that could write is left then, unless the warden
// was killed.
const lastWords = 2 * time.Second

// Ready is a guard and a warden that have begun and wait for their command. They begin in advance, because most commands begin faster than
// these two processes.
type Ready struct {
	conn   net.Conn
	guard  *exec.Cmd
	joined sync.Once
	err    error // the error of the guard's end, after join
}

// Prepare starts a guard and a warden for a command whose streams, Warden and Leave are fixed. The caller must call [RunReady] or
// Close.
func Prepare(s Spec) (*Ready, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	r := &Ready{conn: ours, guard: &exec.Cmd{
		Path: s.Warden[0], Args: append([]string{warden.Name}, s.Warden[1:]...),
		Env: runtimeSettings(), Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr,
		ExtraFiles: []*os.File{theirs},
		// The guard has its own process group, because a signal to our group must not reach the warden.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		// Processes that a killed warden has left may keep the output open.
		WaitDelay: lastWords,
	}}
	if s.Leave {
		r.guard.WaitDelay = tellWithin // processes that were left on purpose may also keep the output open
	}
	err = orphans.Start(r.guard)
	_ = theirs.Close() // the guard has its own copy
	if err != nil {
		_ = ours.Close() // no process has the other end
		return nil, fmt.Errorf("start the warden process of the command: %w", err)
	}
	return r, nil
}

// runtimeSettings returns the part of our environment for guard and warden: the variables of Go's runtime. The rest may contain secrets,
// and the environment for the command is sent later, together with the command.
func runtimeSettings() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return !slices.Contains([]string{"GODEBUG", "GOMAXPROCS", "GOMEMLIMIT", "GORACE", "GOTRACEBACK"}, name)
	})
}

// Alive reports whether the guard has not ended. The guard ends with its warden. A stopped guard counts as alive.
func (r *Ready) Alive() bool {
	var ended unix.Siginfo
	err := unix.Waitid(unix.P_PID, r.guard.Process.Pid, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && ended.Signo == 0
}

// left reports whether the guard has ended without being killed. It may be called only after join. If left returns true, a missing report
// means that there was no command. A guard that was killed may have begun a command without a report.
func (r *Ready) left() bool { return r.err == nil }

// Close ends the processes, unless a command was run with them.
func (r *Ready) Close() {
	_ = r.conn.Close()
	r.join()
}

// join waits until the guard has ended and the output is copied. If the warden was killed, the guard ends when no process is left. While
// the guard runs, join waits for the output without a limit. The time limit begins when the guard has ended.
func (r *Ready) join() {
	r.joined.Do(func() {
		r.wake() // a stopped process would not end
		r.err = orphans.Wait(r.guard)
	})
}

// wake continues the guard and the warden if they were stopped. The guard forwards the signal to the warden.
func (r *Ready) wake() { _ = r.guard.Process.Signal(syscall.SIGCONT) }

// run runs a command like [Run]. The command's streams, Warden and Leave must be the same as in the call of [Prepare].
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
	run := runningCommand{spec: s, conn: r.conn, shared: group != 0}
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

// begin sends the first order. When hundreds of commands start at the same moment, a time limit could be over before the writing
// begins. So there is no limit before ctx ends.
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

// runningCommand is a command in progress, as Run sees it.
type runningCommand struct {
	spec   Spec
	conn   net.Conn
	pid    int
	told   warden.Instant // the deadline that the warden has received
	shared bool           // the command is in our process group, which has the terminal
}

// attend sends orders to the warden until the warden reports the end of the command.
func (r *runningCommand) attend(ctx context.Context) (Result, error) {
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
			// From this point on there is a process that can receive signals.
			r.pid, signals = m.Pid, r.spec.Signals
			if r.spec.Begun != nil {
				r.spec.Begun()
			}
		}
	}
}

// Try applies settings in a separate process, and ends that process. The error names the setting that the kernel refuses. program is
// the Warden of a [Spec].
func Try(program []string, s Settings) error {
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer ours.Close() // all reports are read by then
	launcher := &exec.Cmd{
		Path: program[0], Args: []string{warden.LauncherName, warden.LaunchArgument},
		Env: runtimeSettings(), ExtraFiles: []*os.File{theirs},
	}
	err = orphans.Start(launcher)
	_ = theirs.Close() // the launcher has its own copy
	if err != nil {
		return fmt.Errorf("test the settings of a command: %w", err)
	}
	defer orphans.Wait(launcher) //nolint:errcheck // it has reported its outcome
	_ = ours.SetDeadline(time.Now().Add(tryWithin))
	if err := (warden.Order{Setup: &warden.Setup{Argv: []string{""}, Settings: s}}).Write(ours); err != nil {
		return errors.Join(fmt.Errorf("test the settings of a command: %w", err), launcher.Process.Kill())
	}
	said, err := io.ReadAll(ours)
	if err != nil {
		return errors.Join(fmt.Errorf("test the settings of a command: %w", err), launcher.Process.Kill())
	}
	step, err := warden.ReadOutcome(string(said))
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return cmp.Or(settingError(step, errno), err)
	}
	return err
}

func (r *runningCommand) until() warden.Instant {
	if r.spec.Until == nil {
		return 0
	}
	return warden.Now().Add(r.spec.Until())
}

func (r *runningCommand) tell(o warden.Order) {
	if o.Until != 0 {
		r.told = o.Until
	}
	_ = r.conn.SetWriteDeadline(time.Now().Add(tellWithin))
	_ = o.Write(r.conn) // if the warden does not read it, there will be no report either
}

// forsaken returns the error of a command whose warden has died. The warden's guard kills all remaining processes. If the guard has
// also died, only the process group can still be found.
func (r *runningCommand) forsaken() error {
	if r.pid == 0 {
		return errNotBegun
	}
	if !r.shared {
		_ = syscall.Kill(-r.pid, syscall.SIGKILL)
	}
	orphans.Look()
	return errors.New("the warden process was killed, and the command with it")
}

// byTerminal reports whether a signal comes from a terminal's key. Such a signal reaches the command directly if the command is in the
// terminal's group. Only the process group in the foreground gets these signals from the terminal. So a signal to a group in the
// background was meant for this process.
func byTerminal(s syscall.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	foreground := 0
	onTerminal(func(fd int) { foreground, _ = unix.IoctlGetInt(fd, unix.TIOCGPGRP) }) // 0 is not a group
	return foreground == unix.Getpgrp()
}

// terminalGroup returns our process group if our session has a terminal. Otherwise it returns 0, and the command gets its own group. It
// does not matter whether the standard streams are the terminal: a program reads a password from /dev/tty, and the kernel stops a program
// that does so in the background.
func terminalGroup() int {
	group := 0
	onTerminal(func(int) { group = unix.Getpgrp() })
	return group
}

// onTerminal calls the function do with the terminal of our session, if there is one.
func onTerminal(do func(fd int)) {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	do(fd)
	_ = unix.Close(fd) // no data was written
}

func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket for the warden process: %w", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "warden")
	theirs := os.NewFile(uintptr(fds[1]), "warden")
	conn, err := net.FileConn(ours) // a duplicate
	if err := errors.Join(err, ours.Close()); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn, theirs, nil
}
