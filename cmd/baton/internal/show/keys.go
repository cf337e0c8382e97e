package show

import (
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// oneOrder is the time within which several signals count as one signal. Package main has a constant with the same value.
const oneOrder = time.Second

// Keys makes the terminal r deliver single keys without showing them. Ctrl-C still interrupts the program. Keys returns nil if r is no
// terminal, or if r belongs to another program now. The function restore sets the terminal back to its old settings. The terminal also
// gets its old settings back while Ctrl-Z stops this program, and before a second signal kills this program.
func Keys(r io.Reader) (keys io.Reader, restore func()) {
	f, ok := r.(*os.File)
	if !ok {
		return nil, func() {}
	}
	k := &keyboard{fd: int(f.Fd())}
	before, err := unix.IoctlGetTermios(k.fd, getTermios)
	if err != nil {
		return nil, func() {}
	}
	k.before = before
	// Notify is called before the settings change, so that a Ctrl-Z between the two calls does not leave the terminal changed.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGCONT)
	if !k.raw() {
		signal.Stop(signals)
		return nil, func() {}
	}
	done := make(chan struct{})
	go k.watch(signals, done)
	return f, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(signals)
		<-done
		k.cooked()
	})
}

// keyboard is a terminal that delivers single keys.
type keyboard struct {
	fd     int
	before *unix.Termios
}

// raw changes the terminal's settings and reports whether the terminal now delivers single keys. It does nothing if this program runs in
// the background of a shell, because a change of the settings would stop the program.
func (k *keyboard) raw() bool {
	if group, err := unix.IoctlGetInt(k.fd, unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		return false
	}
	now := *k.before
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(k.fd, setTermios, &now) == nil
}

// cooked restores the terminal's settings. It ignores errors, because they do not matter if the terminal is closed.
func (k *keyboard) cooked() { _ = unix.IoctlSetTermios(k.fd, setTermios, k.before) }

// watch restores the terminal's settings while this program is stopped and before it is killed, so that other programs can use the
// terminal.
func (k *keyboard) watch(signals <-chan os.Signal, done chan<- struct{}) {
	defer close(done)
	var asked time.Time // when the first signal asked the program to end
	for s := range signals {
		switch s {
		case syscall.SIGTSTP:
			k.cooked()
			_ = unix.Kill(os.Getpid(), unix.SIGSTOP) // cannot fail, because this process exists
		case syscall.SIGCONT:
			k.raw()
		case syscall.SIGINT, syscall.SIGTERM:
			if asked.IsZero() {
				asked = time.Now()
			} else if time.Since(asked) > oneOrder {
				k.cooked()
				signal.Reset(s)
				_ = unix.Kill(os.Getpid(), s.(syscall.Signal)) // cannot fail, because this process exists
			}
		}
	}
}
