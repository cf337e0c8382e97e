package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// gatherFor is how long a round trip waits for commands of others to go with it.
// It counts against their leases, since trust begins when a request was made.
const gatherFor = time.Millisecond

// Shared is one connection for the locks of a process: commands that are asked for
// at the same time, or while others are under way, share a round trip. In one
// process only one lock may be made for a key. On a Cluster, where locks live on
// different servers, each lock has a connection of its own all the same.
type Shared struct {
	store *Store

	mu      sync.Mutex
	held    map[string]bool // keys for which there is a lock
	queue   []*request
	driving bool // a goroutine is sending the queue
	server  redis.Conn
	dialled int64 // how often: which server it is, as far as we can tell
	trips   atomic.Int64
}

// request is one command on its way.
type request struct {
	ctx   context.Context
	name  string
	args  []any
	reply any
	err   error
	heard bool // reply and err are the server's word
	done  chan struct{}
}

// NewShared makes a connection to share. It does not connect.
func NewShared(store *Store) *Shared { return &Shared{store: store, held: map[string]bool{}} }

// RoundTrips is how often the connection was waited for.
func (s *Shared) RoundTrips() int64 { return s.trips.Load() }

// claim makes sure that this process campaigns for a key once.
func (s *Shared) claim(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[key] {
		return fmt.Errorf("this process campaigns for lock %q already", key)
	}
	s.held[key] = true
	return nil
}

func (s *Shared) free(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, key)
}

// do runs one command. If ctx ends first, its outcome is unknown. If it is for lack of an
// answer the connection is given up, too: what is under way on it may never be answered.
// One that only is not wanted any more is no reason to cut the others off.
func (s *Shared) do(ctx context.Context, name string, args []any) (any, error) {
	r := &request{ctx: ctx, name: name, args: args, done: make(chan struct{})}
	s.mu.Lock()
	s.queue = append(s.queue, r)
	if !s.driving {
		s.driving = true
		go s.drive()
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.reply, r.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.hangUp(nil)
		}
		return nil, ctx.Err()
	}
}

// drive sends what is queued, trip after trip, until nothing is.
func (s *Shared) drive() {
	time.Sleep(gatherFor)
	for {
		s.mu.Lock()
		batch := s.queue
		s.queue = nil
		if len(batch) == 0 {
			s.driving = false
			s.mu.Unlock()
			return
		}
		server := s.server
		s.mu.Unlock()
		s.trip(server, batch)
		for _, r := range batch {
			close(r.done)
		}
	}
}

// trip sends a batch and reads the replies.
func (s *Shared) trip(conn redis.Conn, batch []*request) {
	ctx, cancel := context.WithDeadline(context.Background(), s.patience(batch))
	defer cancel()
	s.trips.Add(1)
	err := error(nil)
	if conn == nil {
		if conn, err = s.store.Dial(ctx, ""); err == nil {
			s.mu.Lock()
			s.server = conn
			s.dialled++
			s.mu.Unlock()
		}
	}
	if err == nil {
		err = s.exchange(ctx, conn, batch)
	}
	if err == nil {
		return
	}
	s.hangUp(conn)
	for _, r := range batch {
		if !r.heard && r.err == nil {
			r.err = err
		}
	}
}

// patience is until when a trip may last: the most patient of the requests says how long.
// Those who are less so, or have what they waited for no use any more, leave before.
func (s *Shared) patience(batch []*request) (until time.Time) {
	for _, r := range batch {
		at, ok := r.ctx.Deadline()
		if !ok {
			at = time.Now().Add(s.store.opts.Timeout)
		}
		if at.After(until) {
			until = at
		}
	}
	return until
}

// exchange fills the replies in. A request whose reply is an error has its error,
// which says nothing of the others; but a server that refuses may not be the one
// to ask any more, so that its connection is not used again.
func (s *Shared) exchange(ctx context.Context, conn redis.Conn, batch []*request) error {
	for _, r := range batch {
		if r.err = r.ctx.Err(); r.err != nil {
			continue // nobody waits for it any more
		}
		if err := conn.Send(r.name, r.args...); err != nil {
			return err
		}
	}
	if err := conn.Flush(); err != nil {
		return err
	}
	var refused error
	for _, r := range batch {
		if r.err != nil {
			continue
		}
		var refusal redis.Error
		r.reply, r.err = redis.ReceiveContext(conn, ctx)
		r.heard = r.err == nil || errors.As(r.err, &refusal)
		switch {
		case r.err == nil:
		case !r.heard:
			return r.err
		case !strings.HasPrefix(string(refusal), "NOSCRIPT"):
			refused = r.err
		}
	}
	return refused
}

// hangUp closes the connection; with conn, only if it is that one still.
func (s *Shared) hangUp(conn redis.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil || conn != nil && s.server != conn {
		return
	}
	_ = s.server.Close() // it is broken, or will not be used again
	s.server = nil
}

// Close drops the connection.
func (s *Shared) Close() { s.hangUp(nil) }

// conn is what a protocol sees of the connection. Two are equal if the connection
// was not dialled again in between.
func (s *Shared) conn() redis.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return sharedConn{s, s.dialled + 1}
	}
	return sharedConn{s, s.dialled}
}

type sharedConn struct {
	shared  *Shared
	dialled int64
}

var _ redis.ConnWithContext = sharedConn{}

var errShared = errors.New("a shared connection runs whole commands only")

func (c sharedConn) DoContext(ctx context.Context, name string, args ...any) (any, error) {
	return c.shared.do(ctx, name, args)
}

func (c sharedConn) Do(name string, args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.shared.store.opts.Timeout)
	defer cancel()
	return c.shared.do(ctx, name, args)
}

func (sharedConn) Close() error                                { return nil }
func (sharedConn) Err() error                                  { return nil }
func (sharedConn) Send(string, ...any) error                   { return errShared }
func (sharedConn) Flush() error                                { return errShared }
func (sharedConn) Receive() (any, error)                       { return nil, errShared }
func (sharedConn) ReceiveContext(context.Context) (any, error) { return nil, errShared }
