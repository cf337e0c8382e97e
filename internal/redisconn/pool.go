package redisconn

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	keepIdle    = 16          // connections
	keepIdleFor = time.Minute // each
)

var (
	errClosedPool = errors.New("the connections to this server are closed")
	errGivenBack  = errors.New("this connection was given back")
)

// pool keeps idle connections to one server for the next callers. The number of connections in use has no limit.
type pool struct {
	dial func(context.Context) (*conn, error)
	// test reports why a connection that has been idle that long is unusable, or nil.
	test func(ctx context.Context, c redis.Conn, idle time.Duration) error

	mu     sync.Mutex
	idle   []idleConn // the last one was used most recently
	open   int        // in use ones included
	closed bool
}

type idleConn struct {
	*conn
	since time.Time
}

// exhausted reports whether all connections are in use, and at least as many as the pool would keep.
func (p *pool) exhausted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle) == 0 && p.open >= keepIdle
}

// get lends the usable connection that was used most recently, or opens one.
func (p *pool) get(ctx context.Context) (Conn, error) {
	for _, old := range p.outlived() {
		p.discard(old.conn)
	}
	for {
		last, found, err := p.take()
		switch {
		case err != nil:
			return nil, err
		case !found:
			c, err := p.dial(ctx)
			if err != nil {
				p.discard(nil)
				return nil, err
			}
			return &lent{Conn: c, from: p, conn: c}, nil
		case last.Err() == nil && p.test(ctx, last.conn, time.Since(last.since)) == nil:
			return &lent{Conn: last.conn, from: p, conn: last.conn}, nil
		}
		p.discard(last.conn)
	}
}

// outlived takes out connections that have been idle for too long.
func (p *pool) outlived() []idleConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && time.Since(p.idle[n].since) > keepIdleFor {
		n++
	}
	old := slices.Clone(p.idle[:n])
	p.idle = slices.Delete(p.idle, 0, n)
	return old
}

// take takes out the connection that was used most recently. Without one it counts a connection that the caller will open.
func (p *pool) take() (last idleConn, found bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		last = p.idle[n-1]
		p.idle = slices.Delete(p.idle, n-1, n)
		return last, true, nil
	}
	if p.closed {
		return last, false, errClosedPool
	}
	p.open++
	return last, false, nil
}

// put takes a connection back, or closes it if it is unfit.
func (p *pool) put(c *conn, unfit bool) {
	p.mu.Lock()
	if !p.closed && !unfit {
		p.idle = append(p.idle, idleConn{c, time.Now()})
		c = nil
		if len(p.idle) > keepIdle {
			c = p.idle[0].conn
			p.idle = slices.Delete(p.idle, 0, 1)
		}
	}
	p.mu.Unlock()
	if c != nil {
		p.discard(c)
	}
}

// discard closes a connection that is not in the pool; nil if it could not be opened.
func (p *pool) discard(c *conn) {
	if c != nil {
		_ = c.Close() // it is not used again
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
}

// close closes idle connections, and from now on those that come back.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		p.discard(c.conn)
	}
}

// lent is a connection of a pool in use. Closing it gives it back in its first state: outside a transaction, and without replies under
// way.
type lent struct {
	Conn // conn, until it is given back
	from *pool
	conn *conn

	undo   string // the command that ends the transaction; "": no transaction
	pushed bool   // it may receive messages that no command asked for
}

// doing is the connection for a command. It notes the states that the command leaves.
func (l *lent) doing(name string) Conn {
	switch strings.ToUpper(name) {
	case "WATCH":
		if l.undo == "" {
			l.undo = "UNWATCH"
		}
	case "UNWATCH":
		if l.undo == "UNWATCH" {
			l.undo = ""
		}
	case "MULTI":
		l.undo = "DISCARD"
	case "EXEC", "DISCARD":
		l.undo = ""
	case "SUBSCRIBE":
		l.pushed = true
	}
	return l.Conn
}

// Send implements redis.Conn.
func (l *lent) Send(name string, args ...any) error {
	return l.doing(name).Send(name, args...)
}

// Do implements redis.Conn.
func (l *lent) Do(name string, args ...any) (any, error) {
	return l.doing(name).Do(name, args...)
}

// DoContext implements redis.ConnWithContext.
func (l *lent) DoContext(ctx context.Context, name string, args ...any) (any, error) {
	return l.doing(name).DoContext(ctx, name, args...)
}

// DoWithTimeout implements redis.ConnWithTimeout.
func (l *lent) DoWithTimeout(timeout time.Duration, name string, args ...any) (any, error) {
	return l.doing(name).DoWithTimeout(timeout, name, args...)
}

// Close implements redis.Conn.
func (l *lent) Close() error {
	c := l.conn
	if c == nil {
		return nil
	}
	l.Conn, l.conn = broken{errGivenBack}, nil
	var err error
	if l.undo != "" {
		err = c.Send(l.undo)
	}
	if !l.pushed {
		_, left := c.Do("")
		err = errors.Join(err, left)
	}
	l.from.put(c, l.pushed || c.Err() != nil)
	return err
}

// broken is a connection that could not be made.
type broken struct{ err error }

func (b broken) Close() error                                             { return nil }
func (b broken) Err() error                                               { return b.err }
func (b broken) Do(string, ...any) (any, error)                           { return nil, b.err }
func (b broken) DoContext(context.Context, string, ...any) (any, error)   { return nil, b.err }
func (b broken) DoWithTimeout(time.Duration, string, ...any) (any, error) { return nil, b.err }
func (b broken) ReceiveContext(context.Context) (any, error)              { return nil, b.err }
func (b broken) ReceiveWithTimeout(time.Duration) (any, error)            { return nil, b.err }
func (b broken) Send(string, ...any) error                                { return b.err }
func (b broken) Flush() error                                             { return b.err }
func (b broken) Receive() (any, error)                                    { return nil, b.err }
func (b broken) Ask(context.Context, *Question) error                     { return b.err }
func (b broken) CutOff()                                                  {}
func (b broken) ScanKey(context.Context, string, string, string, *Pace, func() bool, func([]byte)) (string, error) {
	return "", b.err
}
