package main

import (
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"baton/internal/testsupport"
)

// tty is the terminal of a user. It stores the text that was written to it, and has a size.
type tty struct {
	t      *testing.T
	master *os.File
	mu     sync.Mutex
	text   []byte
}

// terminal opens a terminal. A program writes to screen.
func terminal(t *testing.T, width, height int) (*tty, *os.File) {
	t.Helper()
	master, screen := testsupport.Terminal(t)
	seen := &tty{t: t, master: master}
	seen.resize(width, height)
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			seen.mu.Lock()
			seen.text = append(seen.text, buf[:n]...)
			seen.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = screen.Close()
		<-read // ends when the last process has closed the terminal
		_ = master.Close()
	})
	return seen, screen
}

func (s *tty) resize(width, height int) {
	s.t.Helper()
	size := &unix.Winsize{Col: uint16(width), Row: uint16(height)}
	if err := unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, size); err != nil {
		s.t.Fatal(err)
	}
}

// String returns all text that was written.
func (s *tty) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}
