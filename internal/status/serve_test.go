package status

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// listen returns a listener on a free port of loopback.
func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// within fails the test if c does not deliver in time.
func within[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("%s: nothing within a minute", what)
		panic("unreachable")
	}
}

func TestServeLetsRequestsFinishAndStopsTheSource(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	asked, ended := make(chan struct{}), make(chan struct{})
	s := New(Config{Health: standby, NodeID: "db9", Patience: time.Minute, Source: func(ctx context.Context) (Snapshot, error) {
		close(asked)
		<-ctx.Done()
		close(ended)
		return Snapshot{}, ctx.Err()
	}})
	ln, served := listen(t), make(chan error, 1)
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
	within(t, asked, "the source is asked")
	stop()
	began := time.Now()
	if text := within(t, answer, "the request under way is answered"); !strings.Contains(text, "db9") {
		t.Errorf("the request under way was answered %q", text)
	}
	if err := within(t, served, "Serve returns"); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took >= shutdownWithin {
		t.Errorf("shutting down took %s: it waited out the source's patience", took)
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
	ln := listen(t)
	_ = ln.Close()
	err := New(Config{Source: fixed(Snapshot{}), Health: standby}).Serve(t.Context(), ln)
	if err == nil || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("got %v, want an error that names %s", err, ln.Addr())
	}
}

func TestConnectionsAreLimitedAndFreedAgain(t *testing.T) {
	inner := listen(t)
	ln := limitListener(inner, 2, time.Second)
	accepted := make(chan net.Conn, 3)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- conn
		}
	}()
	for range 3 {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	first, second := within(t, accepted, "the first"), within(t, accepted, "the second")
	select {
	case <-accepted:
		t.Fatal("a third connection was accepted above the limit of 2")
	case <-time.After(100 * time.Millisecond):
	}
	_ = first.Close()
	_ = first.Close() // net/http may close twice; that must not free two places
	third := within(t, accepted, "the third, once there is room")
	_, _ = second.Close(), third.Close()
	_ = ln.Close()
	within(t, accepted, "Accept ends with the listener")
}

func TestListenerClosesWhileItIsFull(t *testing.T) {
	inner := listen(t)
	ln := limitListener(inner, 1, time.Second)
	conn, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := ln.Accept(); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { _, err := ln.Accept(); failed <- err }()
	_ = ln.Close()
	if err := within(t, failed, "Accept returns"); err == nil {
		t.Error("Accept succeeded on a closed listener")
	}
}

func TestServeOutlivesItsSource(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	request, hangUp := context.WithCancel(t.Context())
	asked, release := make(chan struct{}), make(chan struct{})
	s := New(Config{Health: standby, Source: func(ctx context.Context) (Snapshot, error) {
		close(asked)
		<-ctx.Done()
		<-release
		return Snapshot{}, ctx.Err()
	}})
	ln, served := listen(t), make(chan error, 1)
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
	select {
	case err := <-served:
		t.Fatalf("Serve returned %v while its source still ran", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(release)
	if err := within(t, served, "Serve returns"); err != nil {
		t.Error(err)
	}
}
