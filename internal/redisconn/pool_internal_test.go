package redisconn

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// If hundreds of locks were won at the same moment, all of them need a connection to read.
func TestManyWhoWantAConnectionAtOnceMakeFew(t *testing.T) {
	r := testsupport.StartRedis(t)
	s := openStore(t, r.URL())
	const many = 300
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() {
			for range 3 {
				c, err := s.Conn(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := redis.DoContext(c, t.Context(), "PING"); err != nil {
					t.Error(err)
				}
				_ = c.Close()
			}
		})
	}
	wg.Wait()
	info, err := redis.String(r.Conn().Do("INFO", "stats"))
	_, rest, _ := strings.Cut(info, "total_connections_received:")
	text, _, _ := strings.Cut(rest, "\r")
	if n, bad := strconv.Atoi(text); err != nil || bad != nil || n > many/2 {
		t.Errorf("%d who asked three times made %d connections", many, n)
	}
}

// A transaction or a reply that one caller has left on a connection must not affect the next caller.
func TestAConnectionIsLentAsIfItWereFresh(t *testing.T) {
	g := newRig(t)
	for name, leave := range map[string]func(Conn) error{
		"nothing": func(Conn) error { return nil },
		"a watched key": func(c Conn) error {
			_, err := c.Do("WATCH", "k")
			return err
		},
		"a transaction": func(c Conn) error {
			return errors.Join(SendAll(c, Cmd("WATCH", "k"), Cmd("MULTI"), Cmd("SET", "k", "x")), c.Flush())
		},
		"a reply":   func(c Conn) error { return errors.Join(c.Send("ECHO", "old"), c.Flush()) },
		"a request": func(c Conn) error { return c.Send("ECHO", "old") },
		"a subscription": func(c Conn) error {
			_, err := c.Do("SUBSCRIBE", "c")
			return err
		},
	} {
		first, err := g.store.Conn(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		id, err := first.Do("CLIENT", "ID")
		if err := errors.Join(err, leave(first), first.Close(), first.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := first.DoContext(t.Context(), "PING"); !errors.Is(err, errGivenBack) || !errors.Is(first.Err(), errGivenBack) {
			t.Errorf("%s: used after it was given back: %v", name, err)
		}
		c, err := g.store.Conn(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := hmget(t.Context(), c, []string{"hash"}, "f"); err != nil || got[0] != "-" {
			t.Errorf("%s: of nothing %q, %v", name, got, err)
		}
		same, err := c.Do("CLIENT", "ID")
		if err != nil || (same == id) != (name != "a subscription") {
			t.Errorf("%s: connection %v is followed by %v, %v", name, id, same, err)
		}
		other, err := g.store.Conn(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if another, err := other.Do("CLIENT", "ID"); err != nil || another == same {
			t.Errorf("%s: connection %v is lent twice, %v", name, same, err)
		}
		g.Do("SET", "k", name) // changes a key that a WATCH is on
		if done, err := redis.Strings(func() (any, error) {
			return c.Do("EXEC")
		}()); err == nil {
			t.Errorf("%s: a transaction goes on: %q", name, done)
		}
		if err := SendAll(c, Cmd("MULTI"), Cmd("GET", "k"), Cmd("EXEC")); err != nil {
			t.Fatal(err)
		}
		replies, err := ReceiveAll(t.Context(), c)
		if got, bad := redis.Strings(replies[2], err); bad != nil || len(got) != 1 || got[0] != name {
			t.Errorf("%s: then %q, %v", name, got, bad)
		}
		_, _ = other.Close(), c.Close() // the pool lends c next
	}
}

// hung returns a pool whose connections lead to a server that never answers.
func hung(t *testing.T) (p *pool, open func() int) {
	t.Helper()
	var ends []net.Conn
	s := newServer("", func(context.Context) (*wire, error) {
		here, there := net.Pipe()
		ends = append(ends, there)
		return newWire(redis.NewConn(here, 0, 0), here, time.Second), nil
	}, func(context.Context, redis.Conn, time.Duration) error { return nil })
	return s.pool, func() (n int) {
		for _, c := range ends {
			_ = c.SetReadDeadline(time.Now().Add(time.Nanosecond))
			_, err := c.Read(make([]byte, 1))
			if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
				n++
			}
		}
		return n
	}
}

func TestSixteenIdleConnectionsAreKeptForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open := hung(t)
		borrow := func(n int) (all []Conn) {
			for range n {
				c, err := p.get(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, c)
			}
			return all
		}
		giveBack := func(all []Conn) {
			for _, c := range all {
				_ = c.Close()
			}
		}
		all := borrow(keepIdle + 4)
		if n := open(); n != keepIdle+4 || !p.exhausted() {
			t.Errorf("%d are open, and no more are wanted: %v", n, p.exhausted())
		}
		giveBack(all)
		if n := open(); n != keepIdle || p.open != keepIdle {
			t.Errorf("%d are kept, %d counted", n, p.open)
		}
		time.Sleep(keepIdleFor - time.Second)
		giveBack(borrow(3)) // these connections are in use from time to time
		time.Sleep(2 * time.Second)
		giveBack(borrow(1))
		if n := open(); n != 3 || p.open != 3 {
			t.Errorf("after a minute %d are open, %d counted", n, p.open)
		}
		all = borrow(2)
		p.close()
		if n := open(); n != 2 {
			t.Errorf("closed, and %d are open besides those in use", n-2)
		}
		giveBack(all)
		if n := open(); n != 0 || p.open != 0 {
			t.Errorf("closed and given back: %d are open, %d counted", n, p.open)
		}
		if _, err := p.get(t.Context()); !errors.Is(err, errClosedPool) {
			t.Errorf("got one of a closed pool: %v", err)
		}
	})
}
