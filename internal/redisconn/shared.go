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
	// gatherFor is how long a round trip waits for commands of others to go with it.
	// It counts against their leases, since trust begins when a request was made.
	gatherFor = time.Millisecond
	// gatherLongest is how long commands wait for the answers to those before them, so as
	// to go together. A longer delay is a server that is slow, which is no reason to wait.
	gatherLongest = 20 * time.Millisecond
)

// Shared is one connection for the locks of a process: commands that are asked for
// at the same time, or while others are under way, share a round trip. In one
// process only one lock may be made for a key. On a Cluster, where locks live on
// different servers, each lock has a connection of its own all the same.
//
// An answer belongs to the request that was sent first and has none yet, also if it is not
// waited for any more: a late one costs its own request and no other.
type Shared struct {
	store *Store

	mu      sync.Mutex
	held    map[string]bool // keys for which there is a lock
	queue   []*request
	driving bool  // a goroutine is sending the queue
	line    *line // the connection in use; nil before the next dial
	dialled int64 // how often: which server it is, as far as we know
	trips   atomic.Int64
}

// request is one command on its way. What is not set before it is queued is guarded by
// Shared.mu, but for reply and err, which whoever waits for done reads after that.
type request struct {
	ctx   context.Context
	name  string
	args  []any
	reply any
	err   error
	done  chan struct{}

	on    *line // on which it was sent; nil before
	heard int64 // how many answers had come on it by then
	left  bool  // the answer is not waited for
}

// line is a connection and what is under way on it.
type line struct {
	conn    redis.Conn
	waiting []*request    // for an answer, in the order in which they were sent
	more    chan struct{} // has room for one: there is another one waiting
	heard   int64         // answers that have come
	retired bool          // nothing is sent any more; it is closed when no answer is waited for
	closed  error         // why it is; nil: it is not
}

// NewShared makes a connection to share. It does not connect.
func NewShared(store *Store) *Shared { return &Shared{store: store, held: map[string]bool{}} }

// RoundTrips is how often commands were sent together.
func (s *Shared) RoundTrips() int64 { return s.trips.Load() }

// Claim makes sure that this process campaigns for a key once.
func (s *Shared) Claim(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[key] {
		return fmt.Errorf("this process campaigns for lock %q already", key)
	}
	s.held[key] = true
	return nil
}

// Free ends what [Shared.Claim] began.
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

// leave notes that an answer is not waited for any more. If nothing at all has come on its
// connection since it was sent, nothing may ever come: the next request takes another one.
// Those that are under way are waited for all the same, by whoever has sent them.
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

// retire has nothing more sent on a connection. The caller holds mu.
func (s *Shared) retire(l *line) {
	if s.line == l {
		s.line = nil
	}
	l.retired = true
	l.closeIfIdle()
}

// closeIfIdle closes a retired connection on which no answer is waited for.
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

// close has the reader of the connection return, too, which ends the waits.
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

// drive sends what is queued, trip after trip, until nothing is.
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

// trip sends a batch, and waits for the answers, but not for long.
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

// connected is the connection to send on. The most patient of the batch says how long it
// may take to make one; those who are less so leave before.
func (s *Shared) connected(batch []*request) (*line, error) {
	s.mu.Lock()
	if l := s.line; l != nil && l.conn.Err() != nil {
		s.retire(l) // one of its siblings has met a server that is not the master any more
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

// send sends those whose answers are still waited for, and returns them.
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

// read hands out the answers that come on a connection until it is closed or breaks.
func (s *Shared) read(l *line) {
	const forEver = 0 // whoever waits knows for how long
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

// over ends the waits for answers on a closed connection: none will come.
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

// answered hands the answer to whoever was first to ask. A request whose reply is an
// error has its error, which says nothing of the others; but a server that refuses may not
// be the one to ask any more, so that its connection is not used again.
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

// ofOneKey reports whether a refusal is about the key that was asked for, or the script
// that asks, and not about the server.
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

// Conn is what a protocol sees of the connection. Two are equal if the connection
// was not dialled again in between.
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
