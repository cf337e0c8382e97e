package web

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"baton/internal/status/statustest"
)

// accepting returns a channel with the connections that a listener accepts.
func accepting(t *testing.T, ln net.Listener) <-chan *limitedConn {
	t.Helper()
	accepted := make(chan *limitedConn, 100)
	go func() {
		defer close(accepted)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			accepted <- conn.(*limitedConn)
		}
	}()
	t.Cleanup(func() { _ = ln.Close() })
	return accepted
}

// addressed is a connection from an address that the test chooses.
type addressed struct {
	net.Conn
	from string
}

func (a addressed) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(a.from))
}

func TestRoomIsMadeByWhoeverHasMostAndWaitsLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		inner := statustest.NewPipes()
		l := DefaultLimits()
		l.Connections = connectionLimits{all: 6, idle: 4, idleOfOne: 3, Grace: time.Second}
		accepted := accepting(t, LimitListener(inner, l, zap.New(core)))
		dial := func(from string) *limitedConn {
			client, server := net.Pipe()
			t.Cleanup(func() { _ = client.Close() })
			inner.Dial(addressed{server, from + ":1"})
			return <-accepted
		}
		a, b, c := dial("192.0.2.1"), dial("192.0.2.2"), dial("192.0.2.2")
		time.Sleep(2 * time.Second)
		d := dial("192.0.2.3")
		synctest.Wait() // the oldest connection of the address with the most was closed
		if a.gone || !b.gone || c.gone || d.gone {
			t.Errorf("gone: %v %v %v %v, want the second", a.gone, b.gone, c.gone, d.gone)
		}
		if b.resume() || !c.resume() {
			t.Error("a request is served on a connection that is closed, or on none that is there")
		}
		began := time.Now()
		e, f := dial("192.0.2.4"), dial("192.0.2.5")
		synctest.Wait()
		if time.Since(began) > 0 || e.gone || c.gone {
			t.Error("a connection that is served is counted as one that waits")
		}
		if !a.gone || d.gone || f.gone {
			t.Errorf("gone: %v %v %v, want the oldest of those with equally many", a.gone, d.gone, f.gone)
		}
		dial("192.0.2.6")
		dial("192.0.2.7")
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("a client got %v to send its request, want a second", waited)
		}
		time.Sleep(repeatAfter)
		if got := counts(logs); len(got) != 2 {
			t.Errorf("%d lines", len(got))
		}
	})
}

func TestAnAddressHasSoManyConnectionsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := statustest.NewPipes()
		accepted := accepting(t, LimitListener(inner, DefaultLimits(), zap.NewNop()))
		var all []*limitedConn
		for range MaxIdleOfOne + 10 {
			client, server := net.Pipe()
			t.Cleanup(func() { _ = client.Close() })
			inner.Dial(addressed{server, "192.0.2.1:1"})
			all = append(all, <-accepted)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		for i, c := range all {
			if c.gone != (i < 10) { // the newest connection is always accepted, because other clients may be behind the same proxy
				t.Errorf("connection %d is gone: %v", i, c.gone)
			}
		}
	})
}

func TestConnectionsAreLimitedAndFreedAgain(t *testing.T) {
	inner := statustest.Listen(t)
	l := DefaultLimits()
	l.Connections.all, l.Connections.Grace = 2, time.Hour
	ln := LimitListener(inner, l, zap.NewNop())
	accepted := accepting(t, ln)
	for range 3 {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	first := statustest.Within(t, accepted, "the first")
	first.resume() // requests of both connections are served
	second := statustest.Within(t, accepted, "the second")
	second.resume()
	select {
	case <-accepted:
		t.Fatal("a third connection was accepted above the limit of 2")
	case <-time.After(100 * time.Millisecond):
	}
	_ = first.Close()
	_ = first.Close() // net/http may close a connection twice, which must not free two places
	third := statustest.Within(t, accepted, "the third, once there is room")
	_, _ = second.Close(), third.Close()
	_ = ln.Close()
	statustest.Within(t, accepted, "Accept ends with the listener")
}

func TestListenerClosesWhileItIsFull(t *testing.T) {
	inner := statustest.Listen(t)
	l := DefaultLimits()
	l.Connections.all, l.Connections.Grace = 1, time.Hour
	ln := LimitListener(inner, l, zap.NewNop())
	conn, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	served, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	served.(*limitedConn).resume()
	failed := make(chan error, 1)
	go func() { _, err := ln.Accept(); failed <- err }()
	_ = ln.Close()
	if err := statustest.Within(t, failed, "Accept returns"); err == nil {
		t.Error("Accept succeeded on a closed listener")
	}
}
