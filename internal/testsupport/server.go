package testsupport

import (
	"testing"

	"baton/internal/testsupport/ground"
)

// Server is a Daemon bound to a test: what fails, fails the test. Call it from
// the test's goroutine; elsewhere use Daemon and look at the errors.
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

// Daemon is the same server with error returns.
func (s Server) Daemon() *Daemon { return s.daemon }

// Addr is host:port.
func (s Server) Addr() string { return s.daemon.Addr() }

// Kill ends the server with SIGKILL: a crash.
func (s Server) Kill() { s.t.Helper(); s.check("kill", s.daemon.Kill()) }

// Restart starts it again on the same port with the same directory, killing it
// first if it runs.
func (s Server) Restart() { s.t.Helper(); s.check("restart", s.daemon.Restart()) }

// Freeze stops it where it is (SIGSTOP); its connections stay open.
func (s Server) Freeze() { s.t.Helper(); s.check("freeze", s.daemon.Freeze()) }

// Thaw lets it go on.
func (s Server) Thaw() { s.t.Helper(); s.check("thaw", s.daemon.Thaw()) }

func (s Server) check(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s the test's server: %v", what, err)
	}
}

// newServerDir is the directory of one server, below parent unless that is empty. Tests keep
// theirs in memory; other programs measure, and want a disk.
func newServerDir(parent, name string) (*ground.Dir, error) {
	if parent == "" && testing.Testing() {
		return ground.NewInMemory(name + "-")
	}
	return ground.New(parent, name+"-")
}
