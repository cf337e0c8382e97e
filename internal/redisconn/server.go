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

// Server manages the connections to one server. This is the server at a fixed address, or the server that the Sentinels call the
// master at the time of each dial.
type Server struct {
	address string // the address for messages, and to find a node of a Cluster
	pool    *pool
	waiting *pool // the pool of connections for blocking commands
	dial    func(context.Context) (*wire, error)
	// outdated grows when the connections that exist must not be used again.
	outdated atomic.Uint64
	// suspect is called when outdated grows. It may be nil.
	suspect func()
	turns   chan struct{} // held by callers that want a connection, until they have one
}

// Hundreds of callers may want a connection at the same moment, for example after many elections at once. Most of them should get a
// connection that another caller has just returned, and not open a new one.
const (
	makeAtOnce = 8
	waitForOne = 20 * time.Millisecond // the wait for a returned connection, if at least keepIdle connections are in use and none is idle
)

// newServer returns a server that connects by the function dial. The function test returns the reason why a connection that has been
// idle for a while is unusable.
func newServer(address string, dial func(context.Context) (*wire, error),
	test func(context.Context, redis.Conn, time.Duration) error) *Server {
	s := &Server{address: address, dial: dial, turns: make(chan struct{}, makeAtOnce)}
	s.pool = &pool{dial: func(ctx context.Context) (*conn, error) { return s.open(ctx, false) }, test: test}
	s.waiting = &pool{dial: func(ctx context.Context) (*conn, error) { return s.open(ctx, true) }, test: test}
	return s
}

// Address returns the address of the server as host:port, or the Sentinels that know the master, for messages.
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

// Socket opens a connection outside the pools, logs in, and returns the socket. The caller uses this socket for a protocol that does
// not consist of commands and replies.
func (s *Server) Socket(ctx context.Context) (net.Conn, error) {
	w, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	return w.raw, w.raw.SetDeadline(time.Time{})
}

// Connect opens a connection outside the pools.
func (s *Server) Connect(ctx context.Context) (Conn, error) {
	c, err := s.open(ctx, false)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// open opens a connection. If the argument waits is true, the connection is for blocking commands. We often close such a connection
// when its caller has waited long enough, so its failure is not a sign that the other connections are broken.
func (s *Server) open(ctx context.Context, waits bool) (*conn, error) {
	made := s.outdated.Load() // read before the dial, so that a drop during the dial counts
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

// borrowWaiting takes a connection for blocking commands from their own pool, or opens one.
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

// drop makes every existing connection close after its present use.
func (s *Server) drop() {
	s.outdated.Add(1)
	if s.suspect != nil {
		s.suspect()
	}
}

// conn is a connection that judges the replies of its server. Err returns an error after the connection broke, and after a reply
// that shows that baton must not write to this server, at least not now. The pool then closes this connection and all other
// connections to the server. Otherwise these connections would fail one after the other, and each failure could make a run fail. The
// next dial finds the master again.
type conn struct {
	*wire
	server *Server
	made   uint64
	waits  bool
	unfit  atomic.Bool // this connection must not be used again
	cut    atomic.Bool // we have announced that we close the connection
}

// CutOff implements [Conn].
func (c *conn) CutOff() { c.cut.Store(true) }

var errUnfit = errors.New("the connection was closed, because its server is not the master")

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

// IsDenied reports whether an error means that the Redis user lacks a permission.
func IsDenied(err error) bool {
	refusal, ok := errors.AsType[redis.Error](err)
	return ok && Code(refusal) == "NOPERM"
}

// IsWrongType reports whether an error means that a key has another type than its command needs.
func IsWrongType(err error) bool {
	refusal, ok := errors.AsType[redis.Error](err)
	return ok && Code(refusal) == "WRONGTYPE"
}

// Code returns the first word of an error reply, which is the code of the error. If a command of a script was refused, servers hide
// this code. Servers before Redis 7 put the code inside the text of an ERR. For a missing permission there is no code.
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

// deniedInScript lists the texts by which servers report a script whose user lacks a permission. The first text is from servers up
// to Redis 7.0, the second from later servers.
var deniedInScript = []string{"The user executing the script can't", "ACL failure in script"}
