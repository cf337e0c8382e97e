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

// line is a stream reader: it follows one master, for all feeds that exist when it joins the stream.
type line struct {
	hub    *hub
	server *redisconn.Server
	end    func() // ends it and waits for its end
	wake   chan struct{}

	mu     sync.Mutex
	cancel context.CancelCauseFunc // leaves the stream

	slots slots // used by the goroutine of the watch

	// Of the goroutine that follows:
	table  *keys.Table
	offset func() int64 // the offset after the command that is being handed over
	ears   []ear
}

// ear is a feed and the offset that it starts at.
type ear struct {
	feed *feed
	mark *mark
	from int64
}

// slots are the slots of a master at a moment.
type slots struct {
	name   string // a short text for them
	moving bool   // one of them is being moved
}

// errAnew: the line joins the stream once more, for another feed.
var errAnew = errors.New("joins once more")

func newLine(h *hub, s *redisconn.Server) *line {
	return &line{hub: h, server: s, end: func() {}, wake: make(chan struct{}, 1), cancel: func(error) {}}
}

func (l *line) begin(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	l.end = func() {
		cancel()
		<-done
	}
	go func() {
		defer close(done)
		l.run(ctx)
	}()
}

// joinAnew leaves the stream and joins it once more.
func (l *line) joinAnew() {
	l.mu.Lock()
	l.cancel(errAnew)
	l.mu.Unlock()
	poke(l.wake)
}

// run follows the stream until ctx ends, and joins it again after each break.
func (l *line) run(ctx context.Context) {
	for pause := firstPause; ctx.Err() == nil; {
		began := time.Now()
		session, cancel := context.WithCancelCause(ctx)
		l.mu.Lock()
		l.cancel = cancel
		l.mu.Unlock()
		err := l.once(session)
		anew := errors.Is(context.Cause(session), errAnew)
		cancel(nil)
		l.leave(anew)
		if anew {
			continue
		}
		if ctx.Err() != nil {
			return // then a newer feed waits for the next line
		}
		for _, f := range l.hub.listeners() {
			f.failed(err)
		}
		l.table = nil // the server may be another one
		if time.Since(began) > steadyAfter {
			pause = firstPause
		}
		l.hub.doubt()
		select {
		case <-time.After(pause): // after a refusal, too: the next run may come within a second of an operator's grant
			pause = min(2*pause, longestPause)
		case <-l.wake:
		case <-ctx.Done():
		}
	}
}

// leave makes the feeds note that the stream is no longer followed.
func (l *line) leave(anew bool) {
	for _, e := range l.ears {
		e.feed.left(e.mark, l, anew)
	}
	l.ears = nil
}

// once joins the stream and follows it until it breaks.
func (l *line) once(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // a failed run, as in any other part of a job
			err = fmt.Errorf("following the replication stream panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if l.table == nil {
		if l.table, err = l.commands(ctx); err != nil {
			return err
		}
	}
	own, err := l.ownSlots(ctx)
	if err != nil {
		return err
	}
	var (
		feeds = l.hub.listeners()
		free  = make([][]*mark, len(feeds))
		gen   = make([]int, len(feeds))
		from  []follow.Position
	)
	for i, f := range feeds {
		var at []follow.Position
		free[i], at, gen[i] = f.free()
		from = append(from, at...)
	}
	s, joined, err := follow.Join(ctx, follow.Master{Socket: l.server.Socket, Wait: l.hub.store.Timeout()}, from...)
	if err != nil {
		return err
	}
	l.offset = s.Offset
	lost := joined.Lost
	for i, f := range feeds {
		n := len(free[i])
		if m, at := f.joins(l, gen[i], joined, free[i], lost[:n], own); m != nil {
			l.ears = append(l.ears, ear{f, m, at})
		}
		lost = lost[n:]
	}
	err = s.Follow(ctx, l)
	if errors.Is(err, follow.ErrGarbled) {
		for _, e := range l.ears {
			e.feed.lose(e.mark, err)
		}
	}
	return err
}

func (l *line) commands(ctx context.Context) (*keys.Table, error) {
	conn, err := l.server.Borrow(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // it goes back to the pool
	return keys.Read(ctx, conn)
}

// ownSlots asks a node of a Cluster for its slots.
func (l *line) ownSlots(ctx context.Context) (slots, error) {
	if !l.hub.store.IsCluster() {
		return slots{name: noSlots}, nil
	}
	conn, err := l.server.Borrow(ctx)
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

// lookAtSlots notes the master's slots in the feeds, once they have been the same twice.
func (l *line) lookAtSlots(ctx context.Context) error {
	own, err := l.ownSlots(ctx)
	if err != nil {
		return err
	}
	last := l.slots
	l.slots = own
	if own == last && !own.moving {
		for _, f := range l.hub.listeners() {
			f.has(l, own.name)
		}
	}
	return nil
}

// remark is the channel of keys that must be read again: a publication is part of the stream, and changes no key. The message is the
// number of the database and the key. In a Cluster, where publications are in no stream, it is a key with such a text.
const remark = "baton:capture"

// Command implements follow.Handler.
func (l *line) Command(db int, args [][]byte) {
	if len(args) >= 3 && string(args[1]) == remark && isRemark(args[0]) {
		if number, key, ok := bytes.Cut(args[2], []byte(" ")); ok && string(number) == l.hub.number {
			(*changes)(l).Key(l.hub.db, key)
		}
		return
	}
	if l.table.Changes(db, args, (*changes)(l)) {
		return
	}
	for e := range l.listening {
		e.feed.misses(e.mark, l, fmt.Sprintf("the command %s is not known, so any key may have changed", nameOf(args)))
	}
}

func isRemark(name []byte) bool {
	return bytes.EqualFold(name, []byte("PUBLISH")) || bytes.EqualFold(name, []byte("SET"))
}

// listening yields the ears that have not received the command before.
func (l *line) listening(yield func(*ear) bool) {
	at := l.offset()
	for i := range l.ears {
		if at > l.ears[i].from && !yield(&l.ears[i]) {
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
func (l *line) Reached(at follow.Position) {
	for _, e := range l.ears {
		e.feed.reaches(e.mark, l, at)
	}
}

// changes is a line as a visitor of changed keys.
type changes line

// Key implements keys.Visitor.
func (c *changes) Key(db int, key []byte) {
	if db != c.hub.db && db != follow.AnyDB {
		return
	}
	for e := range (*line)(c).listening {
		if f := e.feed; f.matches(key) {
			f.add(e.mark, (*line)(c), key)
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
	if db == c.hub.db || db == follow.AnyDB || db == keys.AllDBs {
		c.emptied("FLUSHALL or FLUSHDB")
	}
}

// Swapped implements keys.Visitor.
func (c *changes) Swapped(a, b int) {
	if a != b && (a == c.hub.db || b == c.hub.db) {
		c.emptied("SWAPDB")
	}
}

func (c *changes) emptied(command string) {
	for e := range (*line)(c).listening {
		e.feed.emptiedBy(e.mark, (*line)(c), command)
	}
}

var _ follow.Handler = (*line)(nil)
