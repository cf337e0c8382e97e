package show

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Keys reads single keys from a terminal, without showing them; Ctrl-C goes on to interrupt. It
// returns nil if r is no terminal, or one that belongs to another program just now. restore makes
// the terminal what it was.
func Keys(r io.Reader) (keys io.Reader, restore func()) {
	restore = func() {}
	f, ok := r.(*os.File)
	if !ok {
		return nil, restore
	}
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, restore
	}
	// In the background of a shell a change would stop this program.
	if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		return nil, restore
	}
	now := *before
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	if unix.IoctlSetTermios(fd, setTermios, &now) != nil {
		return nil, restore
	}
	return f, func() { _ = unix.IoctlSetTermios(fd, setTermios, before) } // a terminal that is gone needs nothing
}
