package status

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/status/statustest"
)

func TestServeLetsRequestsFinishAndStopsTheSource(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	asked, ended := make(chan struct{}), make(chan struct{})
	s := New(Config{Health: standby, NodeID: "db9", Patience: time.Minute, Source: func(ctx context.Context) (diagnose.Snapshot, error) {
		close(asked)
		<-ctx.Done()
		close(ended)
		return diagnose.Snapshot{}, ctx.Err()
	}})
	ln, served := statustest.Listen(t), make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()

	answer := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + ln.Addr().String() + "/")
		if err != nil {
			answer <- err.Error()
			return
		}
		defer func() { _ = resp.Body.Close() }()
		body, _ := io.ReadAll(resp.Body)
		answer <- string(body)
	}()
	statustest.Within(t, asked, "the source is asked")
	stop()
	// If the server waited for the source's patience, the connection would be cut off first.
	if text := statustest.Within(t, answer, "the request under way is answered"); !strings.Contains(text, "db9") {
		t.Errorf("the request under way was answered %q", text)
	}
	if err := statustest.Within(t, served, "Serve returns"); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
	default:
		t.Error("Serve returned before its source had")
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("the listener is still open")
	}
}

func TestServeTellsWhenTheListenerFails(t *testing.T) {
	ln := statustest.Listen(t)
	_ = ln.Close()
	err := New(Config{Source: statustest.Fixed(diagnose.Snapshot{}), Health: standby}).Serve(t.Context(), ln)
	if err == nil || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("got %v, want an error that names %s", err, ln.Addr())
	}
}

func TestServeOutlivesItsSource(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	request, hangUp := context.WithCancel(t.Context())
	asked, release := make(chan struct{}), make(chan struct{})
	s := New(Config{Health: standby, Source: func(ctx context.Context) (diagnose.Snapshot, error) {
		close(asked)
		<-ctx.Done()
		<-release
		return diagnose.Snapshot{}, ctx.Err()
	}})
	ln, served := statustest.Listen(t), make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	go func() {
		<-asked
		hangUp()
	}()
	req, err := http.NewRequestWithContext(request, http.MethodGet, "http://"+ln.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Fatal("the request was answered before the client hung up")
	}
	stop()
	err = statustest.Within(t, served, "Serve returns")
	if err == nil || !strings.Contains(err.Error(), "collecting the status takes too long") {
		t.Errorf("Serve returned %v while its source still ran", err)
	}
	close(release)
}
