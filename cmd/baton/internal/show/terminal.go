package show

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// TerminalSize returns a function that reads the size of a terminal. ok is false if w is no terminal.
func TerminalSize(w io.Writer) (size func() (width, height int), ok bool) {
	f, ok := w.(*os.File)
	if !ok {
		return nil, false
	}
	if _, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err != nil {
		return nil, false
	}
	return func() (int, int) {
		s, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil || s.Col == 0 || s.Row == 0 {
			return 80, 24
		}
		return int(s.Col), int(s.Row)
	}, true
}

// IsTerminal reports whether w is a terminal. The device /dev/null is no terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, ok = TerminalSize(f)
	return ok
}
