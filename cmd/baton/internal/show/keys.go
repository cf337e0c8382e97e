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

// oneOrder is how long signals count as one, as main counts them.
const oneOrder = time.Second

// Keys reads single keys from a terminal, without showing them; Ctrl-C goes on to interrupt. It
// returns nil if r is no terminal, or one that belongs to another program just now. restore resets
// the terminal's settings; so do a stop of this program (Ctrl-Z), until it goes on, and the second
// signal that ends it.
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
	// Before the change, so that no Ctrl-Z between the two leaves the terminal changed.
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

// raw reports whether the terminal now hands over each key. In the background of a shell a change
// would stop this program.
func (k *keyboard) raw() bool {
	if group, err := unix.IoctlGetInt(k.fd, unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		return false
	}
	now := *k.before
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(k.fd, setTermios, &now) == nil
}

// cooked restores the terminal's settings. For a terminal that is gone its failure does not matter.
func (k *keyboard) cooked() { _ = unix.IoctlSetTermios(k.fd, setTermios, k.before) }

// watch keeps the terminal usable for others while this program stands still, and after its end.
func (k *keyboard) watch(signals <-chan os.Signal, done chan<- struct{}) {
	defer close(done)
	var asked time.Time // to end, for the first time
	for s := range signals {
		switch s {
		case syscall.SIGTSTP:
			k.cooked()
			_ = unix.Kill(os.Getpid(), unix.SIGSTOP) // cannot fail: this process is there
		case syscall.SIGCONT:
			k.raw()
		case syscall.SIGINT, syscall.SIGTERM:
			if asked.IsZero() {
				asked = time.Now()
			} else if time.Since(asked) > oneOrder {
				k.cooked()
				signal.Reset(s)
				_ = unix.Kill(os.Getpid(), s.(syscall.Signal)) // cannot fail: this process is there
			}
		}
	}
}
