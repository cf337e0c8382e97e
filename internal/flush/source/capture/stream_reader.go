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

// The pauses between two attempts to follow. They grow, and start again at the first after steadyAfter.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	steadyAfter  = 30 * time.Second
)

// streamReader follows one master, for all feeds that exist when it joins the stream.
type streamReader struct {
	follower *follower
	server   *redisconn.Server
	end      func() // ends it and waits for its end
	wake     chan struct{}

	mu     sync.Mutex
	cancel context.CancelCauseFunc // leaves the stream

	slots slots // used by the goroutine of the watch

	// Of the goroutine that follows:
	table         *keys.Table
	offset        func() int64 // the offset after the command that is being handed over
	subscriptions []subscription
}

// subscription is a feed and the offset that it starts at.
type subscription struct {
	feed *feed
	mark *mark
	from int64
}

// slots are the slots of a master at a moment.
type slots struct {
	name   string // a short text for them
	moving bool   // one of them is being moved
}

// errRejoin: the reader joins the stream once more, for another feed.
var errRejoin = errors.New("joins once more")

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

// rejoin leaves the stream and joins it once more.
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
			return // then a newer feed waits for the next reader
		}
		for _, f := range r.follower.currentFeeds() {
			f.noteFailure(err)
		}
		r.table = nil // the server may be another one
		if time.Since(began) > steadyAfter {
			pause = firstPause
		}
		r.follower.checkMasters()
		select {
		case <-time.After(pause): // after a refusal, too: the next run may come within a second of an operator's grant
			pause = min(2*pause, longestPause)
		case <-r.wake:
		case <-ctx.Done():
		}
	}
}

// leave makes the feeds note that the stream is no longer followed.
func (r *streamReader) leave(rejoins bool) {
	for _, e := range r.subscriptions {
		e.feed.noteLeft(e.mark, r, rejoins)
	}
	r.subscriptions = nil
}

// followOnce joins the stream and follows it until it breaks.
func (r *streamReader) followOnce(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // a failed run, as in any other part of a job
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
		free  = make([][]*mark, len(feeds))
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
			e.feed.dropMark(e.mark, err)
		}
	}
	return err
}

func (r *streamReader) commands(ctx context.Context) (*keys.Table, error) {
	conn, err := r.server.Borrow(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // it goes back to the pool
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
	defer conn.Close() // it goes back to the pool
	text, err := redis.String(redis.DoContext(conn, ctx, "CLUSTER", "NODES"))
	if err != nil {
		return slots{}, redisconn.Explain(err)
	}
	own, moving := redisconn.OwnSlots(text)
	hash := fnv.New32a()
	if words := strings.SplitN(own, " ", 3); len(words) == 3 { // not the node and its epoch: a failover changes those
		for word := range strings.SplitSeq(words[2], " ") {
			if !strings.HasPrefix(word, "[") {
				_, _ = hash.Write([]byte(word + " "))
			}
		}
	}
	return slots{fmt.Sprintf("%08x", hash.Sum32()), moving}, nil
}

// checkSlots notes the master's slots in the feeds, once they have been the same twice.
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

// rereadChannel is the channel of keys that must be read again: a publication is part of the stream, and changes no key. The message is the
// number of the database and the key. In a Cluster, where publications are in no stream, it is a key with such a text.
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
		e.feed.noteUnknown(e.mark, r, fmt.Sprintf("the command %s is not known, so any key may have changed", nameOf(args)))
	}
}

func isRereadMark(name []byte) bool {
	return bytes.EqualFold(name, []byte("PUBLISH")) || bytes.EqualFold(name, []byte("SET"))
}

// subscribed yields the subscriptions that have not received the command before.
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
		e.feed.advance(e.mark, r, at)
	}
}

// changes is a stream reader as a visitor of changed keys.
type changes streamReader

// Key implements keys.Visitor.
func (c *changes) Key(db int, key []byte) {
	if db != c.follower.db && db != follow.AnyDB {
		return
	}
	for e := range (*streamReader)(c).subscribed {
		if f := e.feed; f.matches(key) {
			f.add(e.mark, (*streamReader)(c), key)
		}
	}
}

// matches reports whether a key belongs to the job.
func (f *feed) matches(key []byte) bool {
	return len(key) >= len(f.prefix) && string(key[:len(f.prefix)]) == f.prefix &&
		f.match(unsafe.String(unsafe.SliceData(key), len(key))) //nolint:gosec // it is not kept
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
		e.feed.noteEmptied(e.mark, (*streamReader)(c), command)
	}
}

var _ follow.Handler = (*streamReader)(nil)
