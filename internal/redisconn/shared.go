package redisconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// gatherFor is how long a round trip waits for further commands. It counts against their
	// leases, since trust begins when the request was made.
	gatherFor = time.Millisecond
	// gatherLongest is how long queued commands wait for earlier replies, to be sent together.
	// They do not wait longer for a slow server.
	gatherLongest = 20 * time.Millisecond
)

// Shared is one connection for all locks of a process: simultaneous commands share a round trip.
// In one process a key can have one lock only. On a Cluster, where locks are on different
// servers, each lock has a connection of its own.
//
// A reply belongs to the oldest request without one, even if its caller no longer waits: a late
// reply fails its own request and no other.
type Shared struct {
	store *Store

	mu      sync.Mutex
	held    map[string]bool // keys that have a lock
	queue   []*request
	driving bool  // a goroutine is sending the queue
	line    *line // the connection in use; nil before the next dial
	dialled int64 // number of dials: each may lead to another server
	trips   atomic.Int64
}

// request is one command. Shared.mu guards the fields that change after it is queued, except
// reply and err, which may be read after done.
type request struct {
	ctx   context.Context
	name  string
	args  []any
	reply any
	err   error
	done  chan struct{}

	on    *line // the connection that it was sent on; nil before
	heard int64 // number of replies on that line by then
	left  bool  // the caller no longer waits
}

// line is a connection with its pending requests.
type line struct {
	conn    redis.Conn
	waiting []*request    // for a reply, in the order of sending
	more    chan struct{} // has room for one: a request was added
	heard   int64         // number of replies
	retired bool          // no longer used; closed when no caller waits
	closed  error         // the reason; nil: open
}

// NewShared makes a Shared. It does not connect.
func NewShared(store *Store) *Shared { return &Shared{store: store, held: map[string]bool{}} }

// RoundTrips is the number of round trips so far.
func (s *Shared) RoundTrips() int64 { return s.trips.Load() }

// Claim reserves a key for one lock of this process.
func (s *Shared) Claim(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[key] {
		return fmt.Errorf("this process campaigns for lock %q already", key)
	}
	s.held[key] = true
	return nil
}

// Free undoes [Shared.Claim].
func (s *Shared) Free(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, key)
}

// do runs one command. If ctx ends first, its outcome is unknown.
func (s *Shared) do(ctx context.Context, name string, args []any) (any, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.store.opts.Timeout)
		defer cancel()
	}
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
		s.leave(r, errors.Is(ctx.Err(), context.DeadlineExceeded))
		return nil, ctx.Err()
	}
}

// leave notes that a caller no longer waits. If no reply at all has come on the connection since
// its request was sent, the connection is retired; other pending requests still wait on it.
func (s *Shared) leave(r *request, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.left = true
	if r.on == nil {
		return
	}
	if late && r.heard == r.on.heard {
		s.retire(r.on)
	}
	r.on.closeIfIdle()
}

// retire stops sending on a connection. The caller holds mu.
func (s *Shared) retire(l *line) {
	if s.line == l {
		s.line = nil
	}
	l.retired = true
	l.closeIfIdle()
}

// closeIfIdle closes a retired connection without waiting callers.
func (l *line) closeIfIdle() {
	if !l.retired {
		return
	}
	for _, r := range l.waiting {
		if !r.left {
			return
		}
	}
	l.close(errClosedLine)
}

// close also makes the connection's reader return, which ends the waits.
func (l *line) close(why error) {
	if l.closed != nil {
		return
	}
	l.closed = why
	_ = l.conn.Close() // it is broken, or will not be used again
	l.wake()
}

func (l *line) wake() {
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// drive sends round trips until the queue is empty.
func (s *Shared) drive() {
	time.Sleep(gatherFor)
	for {
		s.mu.Lock()
		batch := s.queue
		s.queue = nil
		s.driving = len(batch) > 0
		s.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		s.trip(batch)
	}
}

// trip sends a batch and waits a moment for the replies.
func (s *Shared) trip(batch []*request) {
	s.trips.Add(1)
	l, err := s.connected(batch)
	if err != nil {
		for _, r := range batch {
			r.err = err
			close(r.done)
		}
		return
	}
	over := time.NewTimer(gatherLongest)
	defer over.Stop()
	for _, r := range s.send(l, batch) {
		select {
		case <-r.done:
		case <-over.C:
			return
		}
	}
}

// connected is the connection to send on. The latest deadline of the batch limits the dial;
// callers with earlier deadlines leave before.
func (s *Shared) connected(batch []*request) (*line, error) {
	s.mu.Lock()
	if l := s.line; l != nil && l.conn.Err() != nil {
		s.retire(l) // another connection has found that its server is no longer the master
	}
	l := s.line
	s.mu.Unlock()
	if l != nil {
		return l, nil
	}
	var until time.Time
	for _, r := range batch {
		if at, _ := r.ctx.Deadline(); at.After(until) {
			until = at
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	conn, err := s.store.Dial(ctx, "")
	if err != nil {
		return nil, err
	}
	l = &line{conn: conn, more: make(chan struct{}, 1)}
	s.mu.Lock()
	s.line = l
	s.dialled++
	s.mu.Unlock()
	go s.read(l)
	return l, nil
}

// send sends the requests whose callers still wait, and returns them.
func (s *Shared) send(l *line, batch []*request) (sent []*request) {
	s.mu.Lock()
	for _, r := range batch {
		if r.err = cmp.Or(r.ctx.Err(), l.closed); r.err != nil {
			close(r.done)
			continue
		}
		r.on, r.heard = l, l.heard
		sent = append(sent, r)
	}
	l.waiting = append(l.waiting, sent...)
	s.mu.Unlock()
	var err error
	for _, r := range sent {
		if err = l.conn.Send(r.name, r.args...); err != nil {
			break
		}
	}
	if err == nil {
		err = l.conn.Flush()
	}
	if err != nil {
		s.mu.Lock()
		s.retire(l)
		l.close(err)
		s.mu.Unlock()
	}
	l.wake()
	return sent
}

// read hands out replies until the connection is closed or breaks.
func (s *Shared) read(l *line) {
	const forEver = 0 // callers have their own deadlines
	for range l.more {
		for s.anybodyWaits(l) {
			reply, err := redis.ReceiveWithTimeout(l.conn, forEver)
			if err != nil && !errors.As(err, new(redis.Error)) {
				s.mu.Lock()
				l.close(err)
				s.mu.Unlock()
				break
			}
			s.answered(l, reply, err)
		}
		if s.over(l) {
			return
		}
	}
}

func (s *Shared) anybodyWaits(l *line) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.closed == nil && len(l.waiting) > 0
}

// over ends the waits on a closed connection.
func (s *Shared) over(l *line) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.closed == nil {
		return false
	}
	s.retire(l)
	for _, r := range l.waiting {
		r.err = l.closed
		close(r.done)
	}
	l.waiting = nil
	return true
}

var errClosedLine = errors.New("the connection was closed")

// answered gives the reply to the oldest request. An error reply fails its own request only; but
// a server that refuses may no longer be the master, so its connection is retired.
func (s *Shared) answered(l *line, reply any, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := l.waiting[0]
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	l.heard++
	r.reply, r.err = reply, err
	close(r.done)
	if refusal := redis.Error(""); errors.As(err, &refusal) && !ofOneKey(refusal) {
		s.retire(l)
	}
	l.closeIfIdle()
}

// ofOneKey reports whether a refusal concerns the key or the script, not the server.
func ofOneKey(refusal redis.Error) bool {
	switch Code(refusal) {
	case "NOSCRIPT", "WRONGTYPE", "EPOCH":
		return true
	}
	return false
}

// Close drops the connection.
func (s *Shared) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.line; l != nil {
		s.retire(l)
		l.close(errClosedLine)
	}
}

// Conn is the connection as a protocol uses it. Two are equal if the connection was not dialled
// again in between.
func (s *Shared) Conn() redis.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == nil {
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
	return c.shared.do(context.Background(), name, args)
}

func (sharedConn) Close() error                                { return nil }
func (sharedConn) Err() error                                  { return nil }
func (sharedConn) Send(string, ...any) error                   { return errShared }
func (sharedConn) Flush() error                                { return errShared }
func (sharedConn) Receive() (any, error)                       { return nil, errShared }
func (sharedConn) ReceiveContext(context.Context) (any, error) { return nil, errShared }
