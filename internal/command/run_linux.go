package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"baton/internal/command/warden"
)

// untilEvery is how often the deadline is asked for.
const untilEvery = 50 * time.Millisecond

// tellWithin is what the warden gets to take an order. One that does not is
// stopped or gone, and its deadline is kept without us.
const tellWithin = 100 * time.Millisecond

// lastWords is how long the output is waited for when the warden has ended. Nothing is
// left then that could write, unless the warden was killed.
const lastWords = 2 * time.Second

// Run runs a command to its end, and returns when nothing that it has started is
// left. When ctx ends the command is stopped. The error says that it was not run,
// or that its end is not known.
func Run(ctx context.Context, s Spec) (Result, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return Result{}, fmt.Errorf("run %s: %w", s.Argv[0], err)
	}
	defer ours.Close() // the warden has told all that it will
	group := 0
	if s.Terminal {
		group = terminalGroup()
	}
	cmd := exec.Cmd{
		Path: s.Warden[0], Args: append(append([]string{os.Args[0]}, s.Warden[1:]...), append([]string{"--"}, s.Argv...)...),
		Env: s.Env, Dir: s.Dir, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr,
		ExtraFiles: []*os.File{theirs},
		// A group of its own: a signal to ours must not hit the warden.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		// What a warden that was killed has left may keep the output open.
		WaitDelay: lastWords,
	}
	if s.Leave {
		cmd.WaitDelay = tellWithin // so may what is left on purpose
	}
	err = cmd.Start()
	_ = theirs.Close() // the warden has its own
	if err != nil {
		return Result{}, fmt.Errorf("run %s: start its warden: %w", s.Argv[0], err)
	}
	r := running{spec: s, conn: ours, shared: group != 0}
	r.told = r.until()
	// Without a time limit, which could be over before the writing begins where hundreds start
	// at once: the first order always finds room.
	_ = warden.Order{Setup: &warden.Setup{Path: s.Path, Grace: s.Grace, Drain: s.Drain, Leave: s.Leave, Group: group}, Until: r.told}.Write(ours)
	result, err := r.attend(ctx)
	_ = ours.Close()
	// What the warden has to say it has said. This waits for the output to be copied.
	var status *exec.ExitError
	if waited := cmd.Wait(); err == nil && !errors.As(waited, &status) && !errors.Is(waited, exec.ErrWaitDelay) {
		err = waited
	}
	if err != nil {
		return result, fmt.Errorf("run %s: %w", s.Argv[0], err)
	}
	return result, nil
}

// running is a command that runs, as Run sees it.
type running struct {
	spec   Spec
	conn   net.Conn
	pid    int
	told   warden.Instant // the deadline that the warden knows
	shared bool           // the command is in our own group, the terminal's
}

// attend passes orders on until the warden tells the end.
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
			case m.Errno != 0:
				return Result{}, cannotStart(r.spec.Argv[0], r.spec.Path, syscall.Errno(m.Errno))
			case m.Result != nil:
				return Result{Code: m.Result.Code, Signal: syscall.Signal(m.Result.Signal), Stopped: m.Result.Stopped, Rest: m.Result.Rest}, nil
			}
			// From now on there is something that signals can be passed on to.
			r.pid, signals = m.Pid, r.spec.Signals
		}
	}
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
	_ = o.Write(r.conn) // if nobody takes it, there will be no report either
}

// forsaken ends what can still be found of a command whose warden is gone.
func (r *running) forsaken() error {
	if r.pid == 0 {
		return errors.New("its warden ended before it had started the command")
	}
	if !r.shared {
		_ = syscall.Kill(-r.pid, syscall.SIGKILL)
	}
	return errors.New("its warden was killed, and the command with it")
}

// byTerminal says whether a signal comes from a terminal's key, which the command
// feels by itself if it is in the terminal's group. Only the group in the foreground
// gets those; a signal to one in the background was meant for us.
func byTerminal(s syscall.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	foreground := 0
	onTerminal(func(fd int) { foreground, _ = unix.IoctlGetInt(fd, unix.TIOCGPGRP) }) // 0 is no group
	return foreground == unix.Getpgrp()
}

// terminalGroup is our process group if our session has a terminal, else 0: the
// command then gets a group of its own. What the standard streams are says nothing:
// a password is asked for at /dev/tty, and there a group in the background is stopped.
func terminalGroup() int {
	group := 0
	onTerminal(func(int) { group = unix.Getpgrp() })
	return group
}

// onTerminal does something with the terminal of our session, if there is one.
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
