package status

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"baton/internal/testsupport"
)

// holding keeps n connections to address open, each from where from says, and dials each
// again that the server closes. They send text, and then nothing; those that are deaf read
// no answer, either.
func holding(t *testing.T, address string, n int, text string, deaf bool, from func(i int) string) {
	t.Helper()
	var open atomic.Int64
	for i := range n {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from(i))}}
		go func() {
			for t.Context().Err() == nil {
				conn, err := dialer.DialContext(t.Context(), "tcp", address)
				if err != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				open.Add(1)
				stop := make(chan struct{})
				go func() {
					select {
					case <-t.Context().Done():
						_ = conn.Close()
					case <-stop:
					}
				}()
				_, _ = io.WriteString(conn, text)
				if deaf {
					<-t.Context().Done()
				}
				_, _ = conn.Read(make([]byte, 1)) // returns when the server closes it
				close(stop)
				_ = conn.Close()
				open.Add(-1)
			}
		}()
	}
	for deadline := time.Now().Add(time.Minute); open.Load() < int64(n); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("only %d of %d connections are open", open.Load(), n)
		}
	}
}

func TestClientsThatSendNothingKeepNoProbeWaiting(t *testing.T) {
	one := func(int) string { return "127.0.0.1" }
	many := func(i int) string { return fmt.Sprintf("127.0.1.%d", i+1) }
	for name, c := range map[string]struct {
		text string
		deaf bool
		from func(i int) string
	}{
		"from one address":        {"", false, one},
		"from many":               {"", false, many},
		"half a request":          {"GET / HTTP/1.1\r\nHost: local", false, one},
		"half a form":             {"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nt", false, many},
		"answers that are unread": {strings.Repeat("GET /-/leader HTTP/1.1\r\nHost: localhost\r\n\r\n", 50), true, many},
	} {
		t.Run(name, func(t *testing.T) {
			_, address := serving(t, Config{Source: fixed(sample(time.Now())), Metrics: NewMetrics("v1", []string{"views"}), TokenFile: tokenFile(t, secretToken)})
			holding(t, address, 200, c.text, c.deaf, c.from)
			client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
			var worst time.Duration
			slow, asked := 0, 0 // on a busy machine what was sent at once takes its time
			for range 5 {
				for _, path := range []string{"/-/healthy", "/-/ready", "/metrics", "/"} {
					began, connecting := testsupport.StartStopwatch(t), time.Now()
					resp, err := client.Get("http://" + address + path)
					if err != nil && time.Since(connecting) > defaultLimits().connections.grace {
						asked, slow = asked+1, slow+1 // the machine held up the request until its connection counted as idle
						continue
					}
					if err != nil {
						t.Errorf("%s: %v after %v", path, err, began.Took())
						continue
					}
					_, err = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					took := began.Took()
					worst = max(worst, took)
					if err != nil || resp.StatusCode != http.StatusOK {
						t.Errorf("%s: %d, %v after %v", path, resp.StatusCode, err, took)
					}
					asked++
					if took > testsupport.Paced(2*time.Second) {
						slow++
					}
				}
			}
			if 2*slow > asked {
				t.Errorf("%d of %d answers were slow", slow, asked)
			}
			t.Logf("the slowest answer took %v", worst.Round(time.Millisecond))
		})
	}
}

// accepting hands out what a listener accepts.
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

// addressed is a connection from an address that a test makes up.
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
		inner := &pipes{make(chan net.Conn), make(chan struct{})}
		l := defaultLimits()
		l.connections = connectionLimits{all: 6, idle: 4, idleOfOne: 3, grace: time.Second}
		accepted := accepting(t, limitListener(inner, l, zap.New(core)))
		dial := func(from string) *limitedConn {
			client, server := net.Pipe()
			t.Cleanup(func() { _ = client.Close() })
			inner.dialled <- addressed{server, from + ":1"}
			return <-accepted
		}
		a, b, c := dial("192.0.2.1"), dial("192.0.2.2"), dial("192.0.2.2")
		time.Sleep(2 * time.Second)
		d := dial("192.0.2.3")
		synctest.Wait() // there is room for another one: of whoever has most, the oldest
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
		time.Sleep(seldomEvery)
		if got := counts(logs); len(got) != 2 {
			t.Errorf("%d lines", len(got))
		}
	})
}

func TestAnAddressHasSoManyConnectionsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &pipes{make(chan net.Conn), make(chan struct{})}
		accepted := accepting(t, limitListener(inner, defaultLimits(), zap.NewNop()))
		var all []*limitedConn
		for range maxIdleOfOne + 10 {
			client, server := net.Pipe()
			t.Cleanup(func() { _ = client.Close() })
			inner.dialled <- addressed{server, "192.0.2.1:1"}
			all = append(all, <-accepted)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		for i, c := range all {
			if c.gone != (i < 10) { // the newest is always let in: others may be behind the same proxy
				t.Errorf("connection %d is gone: %v", i, c.gone)
			}
		}
	})
}

func TestConnectionsAreLimitedAndFreedAgain(t *testing.T) {
	inner := listen(t)
	l := defaultLimits()
	l.connections.all, l.connections.grace = 2, time.Hour
	ln := limitListener(inner, l, zap.NewNop())
	accepted := accepting(t, ln)
	for range 3 {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	first := within(t, accepted, "the first")
	first.resume() // both are served
	second := within(t, accepted, "the second")
	second.resume()
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
	l := defaultLimits()
	l.connections.all, l.connections.grace = 1, time.Hour
	ln := limitListener(inner, l, zap.NewNop())
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
	if err := within(t, failed, "Accept returns"); err == nil {
		t.Error("Accept succeeded on a closed listener")
	}
}
