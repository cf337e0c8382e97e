package redisconn

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Server is what one pool of connections leads to: the server at an address, or
// whichever the Sentinels call the master.
type Server struct {
	address string // for messages, and of a Cluster's node
	pool    *redis.Pool
	waiting *redis.Pool // of connections to block on
	dial    func(context.Context) (redis.Conn, error)
	// outdated grows when no connection that was made before should be used again.
	outdated atomic.Uint64
	// suspect is called, too; may be nil.
	suspect func()
	turns   chan struct{} // held by those who take a connection, until they have one
}

// Where hundreds want a connection at the same moment, as after an election of many locks,
// most of them shall get one that another has just given back, and not make one.
const (
	makeAtOnce = 8
	keepIdle   = 16
	waitForOne = 20 * time.Millisecond // where so many are in use
)

func newServer(address string, dial func(context.Context) (redis.Conn, error),
	test func(context.Context, redis.Conn, time.Duration) error) *Server {
	s := &Server{address: address, dial: dial, turns: make(chan struct{}, makeAtOnce)}
	pool := func(dial func(context.Context) (redis.Conn, error)) *redis.Pool {
		return &redis.Pool{
			MaxIdle:     keepIdle,
			IdleTimeout: time.Minute,
			DialContext: dial,
			TestOnBorrowContext: func(ctx context.Context, c redis.Conn, since time.Time) error {
				if err := c.Err(); err != nil {
					return err
				}
				return test(ctx, c, time.Since(since))
			},
		}
	}
	s.pool, s.waiting = pool(s.Connect), pool(s.connectToWait)
	return s
}

// Address is host:port, or who knows it; for messages.
func (s *Server) Address() string { return s.address }

// close drops the pooled connections.
func (s *Server) close() error { return errors.Join(s.pool.Close(), s.waiting.Close()) }

// ping tests a connection that has not been used for a while.
func ping(ctx context.Context, c redis.Conn, idle time.Duration) error {
	if idle < 10*time.Second {
		return nil
	}
	_, err := redis.DoContext(c, ctx, "PING")
	return err
}

// Connect opens a connection of its own.
func (s *Server) Connect(ctx context.Context) (redis.Conn, error) { return s.open(ctx, false) }

// connectToWait opens one that is often cut off in the end, by whoever has waited long
// enough. That says nothing against its siblings.
func (s *Server) connectToWait(ctx context.Context) (redis.Conn, error) { return s.open(ctx, true) }

func (s *Server) open(ctx context.Context, waits bool) (redis.Conn, error) {
	made := s.outdated.Load() // before the dial: what is learnt meanwhile counts
	c, err := s.dial(ctx)
	if err != nil {
		if s.suspect != nil {
			s.suspect()
		}
		return nil, err
	}
	return &conn{Conn: c, server: s, made: made, waits: waits}, nil
}

// Borrow takes a connection from the pool, or opens one.
func (s *Server) Borrow(ctx context.Context) (redis.Conn, error) { return s.take(ctx, s.pool) }

// borrowWaiting takes one to block on.
func (s *Server) borrowWaiting(ctx context.Context) (redis.Conn, error) {
	return s.take(ctx, s.waiting)
}

func (s *Server) take(ctx context.Context, from *redis.Pool) (redis.Conn, error) {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for began := time.Now(); from.IdleCount() == 0 && from.ActiveCount() >= keepIdle && time.Since(began) < waitForOne; {
		time.Sleep(time.Millisecond)
	}
	c, err := from.GetContext(ctx)
	if err != nil {
		return nil, err // not c, which is an erroneous connection then
	}
	return c, nil
}

// drop makes every connection that was made before now the last of its use.
func (s *Server) drop() {
	s.outdated.Add(1)
	if s.suspect != nil {
		s.suspect()
	}
}

// conn watches what its server answers. After a reply by which the server is not,
// or not now, the one to write to (DESIGN.md, section 3, rule 8), and after the
// connection broke, Err is not nil, so that a pool closes it, and so it is with all
// its siblings: where one was cut or met a replica, the others would fail one by
// one, and cost a run each. The next dial finds the master anew.
type conn struct {
	redis.Conn
	server *Server
	made   uint64
	waits  bool
	unfit  atomic.Bool // this connection alone
	cut    atomic.Bool // by us
}

// CutOff says that a connection is about to be closed under whoever blocks on it, as
// it is needed no more. That says nothing against its siblings: if it did, two that
// wait would take each other down again and again.
func CutOff(c redis.Conn) {
	if own, ok := c.(*conn); ok {
		own.cut.Store(true)
	}
}

var errUnfit = errors.New("this connection is not used any more: its server is not the one to write to")

// Err implements redis.Conn.
func (c *conn) Err() error {
	if err := c.Conn.Err(); err != nil {
		return err
	}
	if c.unfit.Load() || c.made != c.server.outdated.Load() {
		return errUnfit
	}
	return nil
}

// Do implements redis.Conn.
func (c *conn) Do(name string, args ...any) (any, error) {
	return c.judge(c.Conn.Do(name, args...))
}

// DoContext implements redis.ConnWithContext.
func (c *conn) DoContext(ctx context.Context, name string, args ...any) (any, error) {
	return c.judge(redis.DoContext(c.Conn, ctx, name, args...))
}

// DoWithTimeout implements redis.ConnWithTimeout.
func (c *conn) DoWithTimeout(timeout time.Duration, name string, args ...any) (any, error) {
	return c.judge(redis.DoWithTimeout(c.Conn, timeout, name, args...))
}

// Receive implements redis.Conn.
func (c *conn) Receive() (any, error) {
	return c.judge(c.Conn.Receive())
}

// ReceiveContext implements redis.ConnWithContext.
func (c *conn) ReceiveContext(ctx context.Context) (any, error) {
	return c.judge(redis.ReceiveContext(c.Conn, ctx))
}

// ReceiveWithTimeout implements redis.ConnWithTimeout.
func (c *conn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return c.judge(redis.ReceiveWithTimeout(c.Conn, timeout))
}

func (c *conn) judge(reply any, err error) (any, error) {
	if err != nil {
		c.heed(err)
		return reply, err
	}
	if replies, ok := reply.([]any); ok { // of a pipeline, perhaps
		for _, r := range replies {
			if refusal, ok := r.(redis.Error); ok {
				c.heed(refusal)
			}
		}
	}
	return reply, nil
}

func (c *conn) heed(err error) {
	var refusal redis.Error
	switch {
	case !errors.As(err, &refusal):
		if c.Conn.Err() != nil && !c.waits && !c.cut.Load() {
			c.server.drop()
		}
	default:
		switch Code(refusal) {
		case "READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS", "MISCONF":
			c.unfit.Store(true)
			c.server.drop()
		case "MOVED": // the server is well, and still has other keys
			c.unfit.Store(true)
		}
	}
}

// Code is the word that says what kind of error a reply is. Before version 7, what
// a command inside a script was answered stands within the text of an ERR.
func Code(refusal redis.Error) string {
	text := string(refusal)
	if _, inner, ok := strings.Cut(text, ": -"); ok && strings.HasPrefix(text, "ERR Error running script") {
		text = inner
	}
	code, _, _ := strings.Cut(text, " ")
	if strings.Contains(text, "unauthenticated") {
		code = "NOAUTH" // what Redis answers to a long command before it answers NOAUTH
	}
	return code
}
