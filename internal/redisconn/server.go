package redisconn

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Server is one pool of connections: to the server at an address, or to the one that the Sentinels call the master.
type Server struct {
	address string // for messages, and of a Cluster's node
	pool    *pool
	waiting *pool // of connections to block on
	dial    func(context.Context) (*wire, error)
	// outdated grows when connections made so far should not be used again.
	outdated atomic.Uint64
	// suspect is called then, too; may be nil.
	suspect func()
	turns   chan struct{} // held by callers that want a connection, until they have one
}

// Hundreds may want a connection at the same moment, as after an election of many locks. Most of them should get one that another caller
// has just given back, and not make one.
const (
	makeAtOnce = 8
	waitForOne = 20 * time.Millisecond // while as many are in use as the pool would keep
)

// newServer makes a server with that dial function. test reports why a connection that has been idle for a while is unusable.
func newServer(address string, dial func(context.Context) (*wire, error),
	test func(context.Context, redis.Conn, time.Duration) error) *Server {
	s := &Server{address: address, dial: dial, turns: make(chan struct{}, makeAtOnce)}
	s.pool = &pool{dial: func(ctx context.Context) (*conn, error) { return s.open(ctx, false) }, test: test}
	s.waiting = &pool{dial: func(ctx context.Context) (*conn, error) { return s.open(ctx, true) }, test: test}
	return s
}

// Address is host:port, or the Sentinels, for messages.
func (s *Server) Address() string { return s.address }

// close drops the pooled connections.
func (s *Server) close() {
	s.pool.close()
	s.waiting.close()
}

// ping tests a connection that has not been used for a while.
func ping(ctx context.Context, c redis.Conn, idle time.Duration) error {
	if idle < 10*time.Second {
		return nil
	}
	_, err := redis.DoContext(c, ctx, "PING")
	return err
}

// Socket opens a connection of its own, logs in, and returns the socket: for a protocol without commands and replies.
func (s *Server) Socket(ctx context.Context) (net.Conn, error) {
	w, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	return w.raw, w.raw.SetDeadline(time.Time{})
}

// Connect opens a connection of its own.
func (s *Server) Connect(ctx context.Context) (Conn, error) {
	c, err := s.open(ctx, false)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// open opens a connection. A connection that blocks is often cut off by us when its caller has waited long enough. That says nothing
// about the other connections.
func (s *Server) open(ctx context.Context, waits bool) (*conn, error) {
	made := s.outdated.Load() // before the dial: a drop during the dial counts
	w, err := s.dial(ctx)
	if err != nil {
		if s.suspect != nil {
			s.suspect()
		}
		return nil, err
	}
	return &conn{wire: w, server: s, made: made, waits: waits}, nil
}

// Borrow takes a connection from the pool, or opens one.
func (s *Server) Borrow(ctx context.Context) (Conn, error) { return s.take(ctx, s.pool) }

// borrowWaiting takes a connection for blocking commands.
func (s *Server) borrowWaiting(ctx context.Context) (Conn, error) {
	return s.take(ctx, s.waiting)
}

func (s *Server) take(ctx context.Context, from *pool) (Conn, error) {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for began := time.Now(); from.exhausted() && time.Since(began) < waitForOne; {
		time.Sleep(time.Millisecond)
	}
	return from.get(ctx)
}

// drop makes all present connections close after their present use.
func (s *Server) drop() {
	s.outdated.Add(1)
	if s.suspect != nil {
		s.suspect()
	}
}

// conn watches the replies of its server. Err becomes non-nil after the connection broke, or after a reply which shows that the server is
// not the one to write to, or not now (DESIGN.md, section 3, rule 8). Then a pool closes the connection, and all other connections to the
// server: if one was cut or met a replica, the others would fail one by one, and cost a run each. The next dial finds the master again.
type conn struct {
	*wire
	server *Server
	made   uint64
	waits  bool
	unfit  atomic.Bool // this connection alone
	cut    atomic.Bool // by us
}

// CutOff implements [Conn].
func (c *conn) CutOff() { c.cut.Store(true) }

var errUnfit = errors.New("this connection is not used any more: its server is not the one to write to")

// Err implements redis.Conn.
func (c *conn) Err() error {
	if err := c.wire.Err(); err != nil {
		return err
	}
	if c.unfit.Load() || c.made != c.server.outdated.Load() {
		return errUnfit
	}
	return nil
}

// Do implements redis.Conn.
func (c *conn) Do(name string, args ...any) (any, error) {
	return c.judge(c.wire.Do(name, args...))
}

// DoContext implements redis.ConnWithContext.
func (c *conn) DoContext(ctx context.Context, name string, args ...any) (any, error) {
	return c.judge(c.wire.DoContext(ctx, name, args...))
}

// DoWithTimeout implements redis.ConnWithTimeout.
func (c *conn) DoWithTimeout(timeout time.Duration, name string, args ...any) (any, error) {
	return c.judge(c.wire.DoWithTimeout(timeout, name, args...))
}

// Receive implements redis.Conn.
func (c *conn) Receive() (any, error) {
	return c.judge(c.wire.Receive())
}

// ReceiveContext implements redis.ConnWithContext.
func (c *conn) ReceiveContext(ctx context.Context) (any, error) {
	return c.judge(c.wire.ReceiveContext(ctx))
}

// ReceiveWithTimeout implements redis.ConnWithTimeout.
func (c *conn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return c.judge(c.wire.ReceiveWithTimeout(timeout))
}

// Ask implements [Conn].
func (c *conn) Ask(ctx context.Context, q *Question) error {
	heeded := *q
	heeded.Read = func(a *Answers) error {
		for _, r := range a.Replies {
			if r.Refusal != "" {
				c.heed(r.Refusal)
			}
		}
		return q.Read(a)
	}
	_, err := c.judge(nil, c.wire.Ask(ctx, &heeded))
	return err
}

// ScanKey implements [Conn].
func (c *conn) ScanKey(
	ctx context.Context, command, key, cursor string, pace *Pace, enough func() bool, each func(element []byte),
) (next string, err error) {
	next, err = c.wire.ScanKey(ctx, command, key, cursor, pace, enough, each)
	_, err = c.judge(nil, err)
	return next, err
}

func (c *conn) judge(reply any, err error) (any, error) {
	if err != nil {
		c.heed(err)
		return reply, err
	}
	if replies, ok := reply.([]any); ok { // perhaps of a pipeline
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
		if c.wire.Err() != nil && !c.waits && !c.cut.Load() {
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

// IsDenied reports that the Redis user lacks a permission.
func IsDenied(err error) bool {
	refusal, ok := errors.AsType[redis.Error](err)
	return ok && Code(refusal) == "NOPERM"
}

// IsWrongType reports that a key has another type than its command wants.
func IsWrongType(err error) bool {
	refusal, ok := errors.AsType[redis.Error](err)
	return ok && Code(refusal) == "WRONGTYPE"
}

// Code is the word that names the kind of an error reply. Servers hide the code of a command that a script was refused: before Redis 7 it
// stands within the text of an ERR, and for a lacking permission there is no code.
func Code(refusal redis.Error) string {
	text := string(refusal)
	if slices.ContainsFunc(deniedInScript, func(part string) bool { return strings.Contains(text, part) }) {
		return "NOPERM"
	}
	if _, inner, ok := strings.Cut(text, ": -"); ok && strings.HasPrefix(text, "ERR Error running script") {
		text = inner
	}
	code, _, _ := strings.Cut(text, " ")
	if strings.Contains(text, "unauthenticated") {
		code = "NOAUTH" // Redis' answer to a long command before it answers NOAUTH
	}
	return code
}

// deniedInScript are the texts of servers for a script whose user lacks a permission: up to Redis 7.0, and since.
var deniedInScript = []string{"The user executing the script can't", "ACL failure in script"}
