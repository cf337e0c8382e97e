package testsupport

import (
	"testing"

	"baton/internal/testsupport/ground"
)

// Server is a Daemon for a test: an error fails the test. Use a Server only in the test's goroutine; in other goroutines use the Daemon and
// check the errors.
type Server struct {
	t      testing.TB
	daemon *Daemon
}

// newServer stops the daemon at the test's end.
func newServer(t testing.TB, d *Daemon) Server {
	t.Cleanup(func() {
		if err := d.Stop(); err != nil {
			t.Errorf("stop a server of this test: %v", err)
		}
	})
	return Server{t: t, daemon: d}
}

// Daemon returns the server as a Daemon, whose methods return errors instead of failing the test.
func (s Server) Daemon() *Daemon { return s.daemon }

// Addr returns the server's host:port.
func (s Server) Addr() string { return s.daemon.Addr() }

// Kill ends the server with SIGKILL, like a crash.
func (s Server) Kill() { s.t.Helper(); s.check("kill", s.daemon.Kill()) }

// Restart starts the server again on the same port and directory. It first kills a server that still runs.
func (s Server) Restart() { s.t.Helper(); s.check("restart", s.daemon.Restart()) }

// Freeze stops the server's processes with SIGSTOP. Its connections stay open.
func (s Server) Freeze() { s.t.Helper(); s.check("freeze", s.daemon.Freeze()) }

// Thaw lets a frozen server continue.
func (s Server) Thaw() { s.t.Helper(); s.check("thaw", s.daemon.Thaw()) }

func (s Server) check(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s the test's server: %v", what, err)
	}
}

// newServerDir makes the directory of one server. If parent is empty, a test gets a directory in memory. Other programs get a directory on
// the disk, because they measure times.
func newServerDir(parent, name string) (*ground.Dir, error) {
	if parent == "" && testing.Testing() {
		return ground.NewInMemory(name + "-")
	}
	return ground.New(parent, name+"-")
}
