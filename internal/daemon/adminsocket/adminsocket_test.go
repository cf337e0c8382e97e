package adminsocket

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestOfManyThatWantTheAdminSocketOneHasIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	for range 20 {
		// A dead process has left this socket.
		left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		left.SetUnlinkOnClose(false)
		_ = left.Close()
		var wg sync.WaitGroup
		var bound atomic.Int32
		var mine atomic.Pointer[net.Listener]
		for range 8 {
			wg.Go(func() {
				l, err := Listen(path)
				if err == nil {
					bound.Add(1)
					mine.Store(&l)
				} else if !strings.Contains(err.Error(), "another baton") {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if bound.Load() != 1 {
			t.Fatalf("%d have it", bound.Load())
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%v %v", info.Mode(), err)
		}
		if err := (*mine.Load()).Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestTheAdminSocketTakesThePlaceOfADeadSocketAlone(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "file")
	for _, c := range []struct {
		path string
		make func(path string) error
	}{
		{precious, func(path string) error { return os.WriteFile(path, []byte("precious"), 0o600) }},
		{filepath.Join(dir, "link"), func(path string) error { return os.Symlink(precious, path) }},
		{filepath.Join(dir, "lock"), func(path string) error { return os.Symlink(precious, path+".lock") }},
	} {
		if err := c.make(c.path); err != nil {
			t.Fatal(err)
		}
		l, err := Listen(c.path)
		if err == nil {
			_ = l.Close()
			t.Errorf("%s: its place was taken", c.path)
		}
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "precious" {
		t.Errorf("%v %q", err, text)
	}
}

// A process that can connect to the socket gives orders without a token.
func TestTheAdminSocketIsForItsUserAndGroupAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v, %v; want rw-rw----", info.Mode(), err)
	}
}
