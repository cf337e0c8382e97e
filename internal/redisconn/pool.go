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
	// test returns why a connection that has been idle for this long is unusable, or nil if it is usable.
	test func(ctx context.Context, c redis.Conn, idle time.Duration) error

	mu     sync.Mutex
	idle   []idleConn // the last one was used most recently
	open   int        // the number of open connections, including the connections in use
	closed bool
}

type idleConn struct {
	*conn
	since time.Time
}

// exhausted reports whether no connection is idle, although at least keepIdle connections are open.
func (p *pool) exhausted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle) == 0 && p.open >= keepIdle
}

// get lends the usable idle connection that was used last. If no connection is usable, get opens a new one.
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
			return &pooledConn{Conn: c, from: p, conn: c}, nil
		case last.Err() == nil && p.test(ctx, last.conn, time.Since(last.since)) == nil:
			return &pooledConn{Conn: last.conn, from: p, conn: last.conn}, nil
		}
		p.discard(last.conn)
	}
}

// outlived removes and returns connections that have been idle for too long.
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

// take removes the connection that was used last from the pool, and returns it. If the pool has none, take counts the connection that
// the caller is going to open.
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

// put gives a connection back to the pool, or closes it if it can no longer be used.
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

// discard closes a connection that is not in the pool. The argument c is nil if the connection could not be opened.
func (p *pool) discard(c *conn) {
	if c != nil {
		_ = c.Close() // it is not used again
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
}

// close closes the idle connections. Connections in use are closed when they are put back.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		p.discard(c.conn)
	}
}

// pooledConn is a connection of a pool while a caller uses it. Close gives the connection back in its first state: outside a
// transaction, and with no reply pending.
type pooledConn struct {
	Conn // the connection, until Close gives it back
	from *pool
	conn *conn

	undo   string // the command that ends the transaction; "": no transaction
	pushed bool   // the connection may receive messages that no command asked for
}

// doing returns the connection for a command. It records the state of the connection after the command, for example a transaction
// that has begun.
func (l *pooledConn) doing(name string) Conn {
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
func (l *pooledConn) Send(name string, args ...any) error {
	return l.doing(name).Send(name, args...)
}

// Do implements redis.Conn.
func (l *pooledConn) Do(name string, args ...any) (any, error) {
	return l.doing(name).Do(name, args...)
}

// DoContext implements redis.ConnWithContext.
func (l *pooledConn) DoContext(ctx context.Context, name string, args ...any) (any, error) {
	return l.doing(name).DoContext(ctx, name, args...)
}

// DoWithTimeout implements redis.ConnWithTimeout.
func (l *pooledConn) DoWithTimeout(timeout time.Duration, name string, args ...any) (any, error) {
	return l.doing(name).DoWithTimeout(timeout, name, args...)
}

// Close implements redis.Conn.
func (l *pooledConn) Close() error {
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

// broken is a connection that cannot be used. Its methods return the error, and Close does nothing.
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
