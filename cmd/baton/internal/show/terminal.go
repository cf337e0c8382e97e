package show

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// TerminalSize finds a terminal's size; false if w is none.
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

// IsTerminal reports whether w is a terminal: /dev/null is none.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, ok = TerminalSize(f)
	return ok
}
