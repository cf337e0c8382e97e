package redisconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// gatherFor is how long a round trip waits for more commands. This wait shortens the time for which a node trusts its lease,
	// because that time counts from the request.
	gatherFor = time.Millisecond
	// gatherLongest is the maximum time that queued commands wait for earlier replies, so that they are sent together. The commands
	// do not wait longer, even if the server is slow.
	gatherLongest = 20 * time.Millisecond
)

// Shared is one connection for all locks of a process. Commands that are sent at the same moment share a round trip. Each key can have
// only one lock in a process. On a Cluster each lock has its own connection, because the locks are on different servers.
//
// Each reply belongs to the oldest request that has no reply yet, even if its caller no longer waits. So a late reply makes only its
// own request fail.
type Shared struct {
	store *Store

	mu      sync.Mutex
	held    map[string]bool // keys that have a lock
	queue   []*request
	driving bool            // a goroutine is sending the queue
	line    *sharedPipeline // the connection in use; nil before the next dial
	dialled int64           // number of dials: each may lead to another server
	trips   atomic.Int64
}

// request is one command. Shared.mu guards the fields that change after the request was queued. The fields reply and err are not
// guarded. They may be read when the channel done is closed.
type request struct {
	ctx   context.Context
	first bool // the request is sent before the other requests of its round trip
	name  string
	args  []any
	reply any
	err   error
	done  chan struct{}

	on    *sharedPipeline // the connection that the request was sent on; nil before
	heard int64           // the number of replies on that connection when the request was sent
	left  bool            // the caller no longer waits
}

// sharedPipeline is one connection of Shared, together with the requests that wait for a reply on this connection.
type sharedPipeline struct {
	conn    redis.Conn
	waiting []*request    // the requests that wait for a reply, in the order of sending
	more    chan struct{} // receives a value when a request was added
	heard   int64         // number of replies
	retired bool          // no longer used; closed when no caller waits
	closed  error         // the reason why the connection was closed; nil: it is open
}

// NewShared makes a Shared. It does not connect.
func NewShared(store *Store) *Shared { return &Shared{store: store, held: map[string]bool{}} }

// RoundTrips returns the number of round trips so far.
func (s *Shared) RoundTrips() int64 { return s.trips.Load() }

// Claim reserves a key for one lock of this process.
func (s *Shared) Claim(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[key] {
		return fmt.Errorf("this process already campaigns for lock %q", key)
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

type firstKey struct{}

// First returns a context for renewals. Their commands go before the other commands of the same round trip.
func First(ctx context.Context) context.Context { return context.WithValue(ctx, firstKey{}, true) }

// do runs one command. If ctx ends before the reply, it is unknown whether Redis executes the command.
func (s *Shared) do(ctx context.Context, name string, args []any) (any, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.store.opts.Timeout)
		defer cancel()
	}
	r := &request{ctx: ctx, first: ctx.Value(firstKey{}) != nil, name: name, args: args, done: make(chan struct{})}
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

// leave records that the caller of a request no longer waits. If the caller's deadline has passed, and no reply has come on the
// connection since the request was sent, leave retires the connection. On a retired connection, earlier requests still wait for
// their replies.
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

// retire makes Shared send nothing more on a connection. The caller holds mu.
func (s *Shared) retire(l *sharedPipeline) {
	if s.line == l {
		s.line = nil
	}
	l.retired = true
	l.closeIfIdle()
}

// closeIfIdle closes a retired connection when no caller waits on it.
func (l *sharedPipeline) closeIfIdle() {
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

// close closes the connection. The goroutine that reads from it then ends the waits of all callers.
func (l *sharedPipeline) close(why error) {
	if l.closed != nil {
		return
	}
	l.closed = why
	_ = l.conn.Close() // it is broken, or will not be used again
	l.wake()
}

func (l *sharedPipeline) wake() {
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// drive sends the queued requests in one or more round trips, until the queue is empty.
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
		slices.SortStableFunc(batch, func(a, b *request) int { return rank(a) - rank(b) })
		s.trip(batch)
	}
}

func rank(r *request) int {
	if r.first {
		return 0
	}
	return 1
}

// trip sends a batch of requests in one round trip, and waits a short time for the replies.
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

// connected returns the connection on which to send a batch of requests. If it must dial, the dial lasts at most until the latest
// deadline of the batch. A caller with an earlier deadline stops waiting earlier.
func (s *Shared) connected(batch []*request) (*sharedPipeline, error) {
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
	l = &sharedPipeline{conn: conn, more: make(chan struct{}, 1)}
	s.mu.Lock()
	s.line = l
	s.dialled++
	s.mu.Unlock()
	go s.read(l)
	return l, nil
}

// send sends those requests of a batch that still have a waiting caller, and returns these requests.
func (s *Shared) send(l *sharedPipeline, batch []*request) (sent []*request) {
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

// read passes each reply to the request that waits for it, until the connection is closed or breaks.
func (s *Shared) read(l *sharedPipeline) {
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

func (s *Shared) anybodyWaits(l *sharedPipeline) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.closed == nil && len(l.waiting) > 0
}

// over ends the waits of all callers if the connection is closed. It reports whether the connection is closed.
func (s *Shared) over(l *sharedPipeline) bool {
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

// answered passes a reply to the oldest request that waits. An error reply makes only that request fail. But if the refusal concerns
// the whole server, answered also retires the connection, because the server may no longer be the master.
func (s *Shared) answered(l *sharedPipeline, reply any, err error) {
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

// ofOneKey reports whether a refusal concerns only the key or the script, and not the whole server.
func ofOneKey(refusal redis.Error) bool {
	switch Code(refusal) {
	case "NOSCRIPT", "WRONGTYPE", "EPOCH":
		return true
	}
	return false
}

// Close drops the connection. A later request dials a new one.
func (s *Shared) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.line; l != nil {
		s.retire(l)
		l.close(errClosedLine)
	}
}

// Conn returns a connection that sends commands through Shared. The results of two calls are equal if Shared has not dialled again
// between these calls.
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

var errShared = errors.New("a shared connection does not send and receive separately")

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
