package daemon

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/crash"
	"baton/internal/testsupport"

	"go.uber.org/zap"
)

// TestSystemdHearsOfTheShutdownWhenItBegins uses a Redis that hangs, so that the shutdown takes as long as the attempt to release the
// lock.
func TestSystemdHearsOfTheShutdownWhenItBegins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	await := func(state string) {
		t.Helper()
		if err := socket.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		for buf := make([]byte, 1024); ; {
			n, err := socket.Read(buf)
			if err != nil {
				t.Fatalf("systemd never heard %s: %v", state, err)
			}
			if strings.HasPrefix(string(buf[:n]), state) {
				return
			}
		}
	}

	r := testsupport.StartRedis(t)
	c := config.Config{}.WithDefaults()
	c.Redis.URL, c.HTTP.Listen = r.URL(), "off"
	c.Election = config.Election{TTL: time.Minute, AttemptTimeout: 4 * time.Second}
	c = c.WithDefaults()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, c, Options{Version: "test", Logger: zap.NewNop(), Getenv: func(string) (string, bool) { return "", false }, Exit: func(int) {}})
	}()
	await("READY=1")
	await("STATUS=leading epoch ")
	r.Freeze()
	stop()
	await("STOPPING=1")
	heard := time.Now()
	if err := testsupport.Receive(t, "the daemon ends", done); err != nil {
		t.Fatal(err)
	}
	if left := time.Since(heard); left < c.Election.AttemptTimeout/2 {
		t.Errorf("systemd heard of the shutdown %v before its end; a release without an answer takes %v", left, c.Election.AttemptTimeout)
	}
}

func TestALoopThatIsAskedToBeSlowIsNotStuck(t *testing.T) {
	for _, e := range []config.Election{
		config.Config{}.WithDefaults().Election,
		{TTL: time.Hour, HeartbeatInterval: 20 * time.Minute, PollInterval: time.Second, AttemptTimeout: time.Second},
		{TTL: time.Hour, HeartbeatInterval: time.Second, PollInterval: 30 * time.Minute, AttemptTimeout: time.Second},
	} {
		if after := electionStuckAfter(e); after < time.Minute+max(e.HeartbeatInterval, e.PollInterval)*11/10 {
			t.Errorf("%+v counts as stuck after %v", e, after)
		}
	}
}

func TestTheLeaseFileIsInTheFirstRuntimeDirectory(t *testing.T) {
	for dirs, want := range map[string]string{"": "", "/run/baton": "/run/baton/lease.json", "/run/baton:/run/other": "/run/baton/lease.json"} {
		got, ok := crash.LeasePath(func(string) (string, bool) { return dirs, dirs != "" })
		if got != want || ok != (want != "") {
			t.Errorf("with %q: %q, %v; want %q", dirs, got, ok, want)
		}
	}
}
