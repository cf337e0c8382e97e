package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
	"baton/internal/redisconn/follow"
	"baton/internal/redisconn/follow/keys"
)

// These are the pauses between two attempts to follow a stream. Each pause is longer than the previous one. If a stream was followed for
// steadyAfter without a break, the next pause is the first one again.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	steadyAfter  = 30 * time.Second
)

// streamReader follows one master, for all feeds that exist when it joins the stream.
type streamReader struct {
	follower *follower
	server   *redisconn.Server
	end      func() // ends the reader and waits for its end
	wake     chan struct{}

	mu     sync.Mutex
	cancel context.CancelCauseFunc // makes the reader leave the stream

	slots slots // used by the goroutine of the watch

	// Only the goroutine that follows the stream uses these fields:
	table         *keys.Table
	offset        func() int64 // the offset after the command that is being handled
	subscriptions []subscription
}

// subscription is a feed that receives changes from the stream, and the offset where it begins to receive them.
type subscription struct {
	feed   *feed
	cursor *cursor
	from   int64
}

// slots describes the slots of a master at one moment.
type slots struct {
	name   string // a short text for the slots
	moving bool   // one of the slots is being moved
}

// errRejoin makes the reader leave the stream and join it again, because a feed of another job was added.
var errRejoin = errors.New("the reader joins the stream again, for another job")

func newStreamReader(h *follower, s *redisconn.Server) *streamReader {
	return &streamReader{follower: h, server: s, end: func() {}, wake: make(chan struct{}, 1), cancel: func(error) {}}
}

func (r *streamReader) begin(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	r.end = func() {
		cancel()
		<-done
	}
	go func() {
		defer close(done)
		r.run(ctx)
	}()
}

// rejoin makes the reader leave the stream and join it again.
func (r *streamReader) rejoin() {
	r.mu.Lock()
	r.cancel(errRejoin)
	r.mu.Unlock()
	wake(r.wake)
}

// run follows the stream until ctx ends, and joins it again after each break.
func (r *streamReader) run(ctx context.Context) {
	for pause := firstPause; ctx.Err() == nil; {
		began := time.Now()
		session, cancel := context.WithCancelCause(ctx)
		r.mu.Lock()
		r.cancel = cancel
		r.mu.Unlock()
		err := r.followOnce(session)
		rejoins := errors.Is(context.Cause(session), errRejoin)
		cancel(nil)
		r.leave(rejoins)
		if rejoins {
			continue
		}
		if ctx.Err() != nil {
			return // a feed that was added later waits for the next reader
		}
		for _, f := range r.follower.currentFeeds() {
			f.noteFailure(err)
		}
		r.table = nil // a different server may have this address now
		if time.Since(began) > steadyAfter {
			pause = firstPause
		}
		r.follower.checkMasters()
		select {
		// The reader also tries again after a refusal, because an operator may grant the permission, and the next run may begin within a
		// second.
		case <-time.After(pause):
			pause = min(2*pause, longestPause)
		case <-r.wake:
		case <-ctx.Done():
		}
	}
}

// leave tells the feeds that the stream is no longer followed.
func (r *streamReader) leave(rejoins bool) {
	for _, e := range r.subscriptions {
		e.feed.noteLeft(e.cursor, r, rejoins)
	}
	r.subscriptions = nil
}

// followOnce joins the stream and follows it until it breaks.
func (r *streamReader) followOnce(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // treated like an error, as in other parts of a job
			err = fmt.Errorf("following the replication stream panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if r.table == nil {
		if r.table, err = r.commands(ctx); err != nil {
			return err
		}
	}
	own, err := r.ownSlots(ctx)
	if err != nil {
		return err
	}
	var (
		feeds = r.follower.currentFeeds()
		free  = make([][]*cursor, len(feeds))
		gen   = make([]int, len(feeds))
		from  []follow.Position
	)
	for i, f := range feeds {
		var at []follow.Position
		free[i], at, gen[i] = f.freeMarks()
		from = append(from, at...)
	}
	s, joined, err := follow.Join(ctx, follow.Master{Socket: r.server.Socket, Wait: r.follower.store.Timeout()}, from...)
	if err != nil {
		return err
	}
	r.offset = s.Offset
	lost := joined.Lost
	for i, f := range feeds {
		n := len(free[i])
		if m, at := f.noteJoin(r, gen[i], joined, free[i], lost[:n], own); m != nil {
			r.subscriptions = append(r.subscriptions, subscription{f, m, at})
		}
		lost = lost[n:]
	}
	err = s.Follow(ctx, r)
	if errors.Is(err, follow.ErrGarbled) {
		for _, e := range r.subscriptions {
			e.feed.dropMark(e.cursor, err)
		}
	}
	return err
}

func (r *streamReader) commands(ctx context.Context) (*keys.Table, error) {
	conn, err := r.server.Borrow(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // returns it to the pool
	return keys.Read(ctx, conn)
}

// ownSlots asks a node of a Cluster for its slots.
func (r *streamReader) ownSlots(ctx context.Context) (slots, error) {
	if !r.follower.store.IsCluster() {
		return slots{name: noSlots}, nil
	}
	conn, err := r.server.Borrow(ctx)
	if err != nil {
		return slots{}, err
	}
	defer conn.Close() // returns it to the pool
	text, err := redis.String(redis.DoContext(conn, ctx, "CLUSTER", "NODES"))
	if err != nil {
		return slots{}, redisconn.Explain(err)
	}
	own, moving := redisconn.OwnSlots(text)
	hash := fnv.New32a()
	if words := strings.SplitN(own, " ", 3); len(words) == 3 { // without the id and the epoch of the node, which a failover changes
		for word := range strings.SplitSeq(words[2], " ") {
			if !strings.HasPrefix(word, "[") {
				_, _ = hash.Write([]byte(word + " "))
			}
		}
	}
	return slots{fmt.Sprintf("%08x", hash.Sum32()), moving}, nil
}

// checkSlots records the master's slots in the feeds, once two successive requests have returned the same slots and no slot is being moved.
func (r *streamReader) checkSlots(ctx context.Context) error {
	own, err := r.ownSlots(ctx)
	if err != nil {
		return err
	}
	last := r.slots
	r.slots = own
	if own == last && !own.moving {
		for _, f := range r.follower.currentFeeds() {
			f.noteSlots(r, own.name)
		}
	}
	return nil
}

// rereadChannel is the channel for keys that must be read again. baton publishes a message, because a publication is part of the stream and
// changes no key. The message contains the number of the database and the key. In a Cluster the stream contains no publications, so baton
// writes the message to a key with this name.
const rereadChannel = "baton:capture"

// Command implements follow.Handler.
func (r *streamReader) Command(db int, args [][]byte) {
	if len(args) >= 3 && string(args[1]) == rereadChannel && isRereadMark(args[0]) {
		if number, key, ok := bytes.Cut(args[2], []byte(" ")); ok && string(number) == r.follower.number {
			(*changes)(r).Key(r.follower.db, key)
		}
		return
	}
	if r.table.Changes(db, args, (*changes)(r)) {
		return
	}
	for e := range r.subscribed {
		e.feed.noteUnknown(e.cursor, r, fmt.Sprintf("baton does not know the command %s, so any key may have changed", nameOf(args)))
	}
}

func isRereadMark(name []byte) bool {
	return bytes.EqualFold(name, []byte("PUBLISH")) || bytes.EqualFold(name, []byte("SET"))
}

// subscribed yields the subscriptions that have not yet received the command that is being handled.
func (r *streamReader) subscribed(yield func(*subscription) bool) {
	at := r.offset()
	for i := range r.subscriptions {
		if at > r.subscriptions[i].from && !yield(&r.subscriptions[i]) {
			return
		}
	}
}

func nameOf(args [][]byte) string {
	if len(args) == 0 || args[0] == nil {
		return "that was too long to be read"
	}
	return fmt.Sprintf("%.40q", args[0])
}

// Reached implements follow.Handler.
func (r *streamReader) Reached(at follow.Position) {
	for _, e := range r.subscriptions {
		e.feed.advance(e.cursor, r, at)
	}
}

// changes is a streamReader that implements keys.Visitor.
type changes streamReader

// Key implements keys.Visitor.
func (c *changes) Key(db int, key []byte) {
	if db != c.follower.db && db != follow.AnyDB {
		return
	}
	for e := range (*streamReader)(c).subscribed {
		if f := e.feed; f.matches(key) {
			f.add(e.cursor, (*streamReader)(c), key)
		}
	}
}

// matches reports whether a key belongs to the job.
func (f *feed) matches(key []byte) bool {
	return len(key) >= len(f.prefix) && string(key[:len(f.prefix)]) == f.prefix &&
		f.match(unsafe.String(unsafe.SliceData(key), len(key))) //nolint:gosec // match keeps no reference to the key
}

// Flushed implements keys.Visitor.
func (c *changes) Flushed(db int) {
	if db == c.follower.db || db == follow.AnyDB || db == keys.AllDBs {
		c.emptied("FLUSHALL or FLUSHDB")
	}
}

// Swapped implements keys.Visitor.
func (c *changes) Swapped(a, b int) {
	if a != b && (a == c.follower.db || b == c.follower.db) {
		c.emptied("SWAPDB")
	}
}

func (c *changes) emptied(command string) {
	for e := range (*streamReader)(c).subscribed {
		e.feed.noteEmptied(e.cursor, (*streamReader)(c), command)
	}
}

var _ follow.Handler = (*streamReader)(nil)
