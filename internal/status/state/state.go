// Package state is shared by page and API. It reads the state of the election and its jobs once
// for all requests, removes secrets for callers without the token, and carries out orders, a few
// at a time.
package state

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/web"
	"baton/internal/text"
)

const (
	// defaultPatience bounds a request's wait for the Source. With rendering, and on a
	// slow machine, the answer still comes within the promised two seconds.
	defaultPatience = 1500 * time.Millisecond
	// unknownPatience bounds the wait until the Source first answers: after it, requests get the configured state.
	unknownPatience = 800 * time.Millisecond
	// SourceTimeout ends an attempt to gather the state, so that a new attempt can begin.
	SourceTimeout = 5 * time.Second
	// shareFor is how long a Snapshot serves further requests: Redis is read at most
	// twice a second, with any number of open pages.
	shareFor = 500 * time.Millisecond
)

// Source gathers a Snapshot. It must return soon after ctx ends. Together with an
// error it may return a Snapshot of the node's own knowledge (NodeID, Version, LockKey,
// Role, Redis, and Jobs as configured). The last known state completes it.
type Source func(ctx context.Context) (diagnose.Snapshot, error)

// Own returns the node's state without asking a server: its identity and its configuration. It must not block.
type Own func() diagnose.Snapshot

// Config has the parts and settings of a State.
type Config struct {
	Source          Source
	Own             Own           // may be nil
	Leading         func() bool   // whether this node leads, from memory
	NodeID, Version string        // shown until the Source first answers
	Patience        time.Duration // 0: 1.5 s
	Log             *zap.Logger
}

// State asks a Source, one request at a time, and remembers the last good answer.
type State struct {
	Config
	live *web.Feeds[struct{}, *Update]

	Life context.Context // ends when the server does
	stop context.CancelFunc
	busy sync.WaitGroup

	mu      sync.Mutex
	last    diagnose.Snapshot // the last good answer
	known   bool              // last is set
	at      time.Time         // when it came
	current diagnose.Snapshot // the last answer, good or not
	asked   time.Time         // when current came
	flight  chan struct{}     // closed when the attempt under way ends; nil without one
}

// New returns a State of c.
func New(c Config) *State {
	if c.Patience <= 0 {
		c.Patience = defaultPatience
	}
	w := &State{Config: c}
	w.Life, w.stop = context.WithCancel(context.Background())
	w.live = newLive(w)
	return w
}

// Snapshot returns the Source's answer, completed from the node's memory. The second result is false
// until the Source has answered once without an error.
func (w *State) Snapshot(ctx context.Context) (diagnose.Snapshot, bool) {
	snap, known := w.read(ctx)
	if snap.NodeID == "" {
		snap.NodeID, snap.Version = w.NodeID, w.Version
	}
	if snap.Error != "" {
		// The node knows its own role without Redis, and the last known role may be out of date.
		snap.Role = diagnose.RoleConnecting
		if w.Leading() {
			snap.Role = diagnose.RoleLeading
		}
	}
	return diagnose.Aged(snap), known
}

// read returns the current state, or after w.patience the last known one with the
// reason. ok is false until the Source has answered once without an error.
func (w *State) read(ctx context.Context) (s diagnose.Snapshot, ok bool) {
	flight := w.join()
	if flight != nil {
		within := w.patience()
		patience := time.NewTimer(within)
		defer patience.Stop()
		select {
		case <-flight:
		case <-ctx.Done():
		case <-patience.C:
			w.mu.Lock()
			defer w.mu.Unlock()
			s := w.lastKnown("Redis did not answer within " + text.Span(within))
			s.Redis.OK, s.Redis.Error, s.Redis.Since = false, "no answer within "+text.Span(within), time.Time{}
			return s, w.known
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current, w.known
}

func (w *State) patience() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known {
		return w.Patience
	}
	return min(w.Patience, unknownPatience)
}

// join returns the attempt under way, or starts one. It returns nil if the last answer is
// young enough to be used again, or the server has ended.
func (w *State) join() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flight != nil {
		return w.flight
	}
	if !w.asked.IsZero() && time.Since(w.asked) < shareFor || w.Life.Err() != nil {
		return nil
	}
	flight := make(chan struct{})
	w.flight = flight
	w.busy.Go(func() {
		s, err := w.ask()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.flight == flight {
			w.flight = nil
			w.take(s, err)
		} else if !w.known { // an order came meanwhile: this answer may be older than the order
			w.take(s, err)
			w.asked = time.Time{}
		}
		close(flight)
	})
	return flight
}

// Outdate makes the next request gather the state again, since an order has changed it.
func (w *State) Outdate() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked, w.flight = time.Time{}, nil
}

// ask calls the Source. It runs outside of any request, so it must recover from a panic:
// that would end the daemon and its leadership.
func (w *State) ask() (s diagnose.Snapshot, err error) {
	ctx, cancel := context.WithTimeout(w.Life, SourceTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("gathering the status panicked: %v", p)
			w.Log.Error("gathering the status panicked", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		}
	}()
	return w.Source(ctx)
}

// take stores an answer. The caller holds w.mu.
func (w *State) take(s diagnose.Snapshot, err error) {
	w.asked = time.Now()
	s = operate.Bounded(s)
	if err == nil {
		s.Age, s.Error = 0, ""
		w.last, w.current, w.known, w.at = s, s, true, w.asked
		return
	}
	w.Log.Debug("status is incomplete", zap.Error(err))
	w.current = complete(w.lastKnown(err.Error()), s)
}

// complete copies the node's own knowledge into old.
func complete(old, own diagnose.Snapshot) diagnose.Snapshot {
	if own.NodeID == "" {
		return old
	}
	old.NodeID, old.Role, old.Redis = own.NodeID, own.Role, own.Redis
	old.Version, old.LockKey = cmp.Or(own.Version, old.Version), cmp.Or(own.LockKey, old.LockKey)
	if own.Jobs != nil && old.Jobs == nil {
		old.Jobs = own.Jobs
	}
	return old
}

// lastKnown returns the last good Snapshot with its age, or without one the node's own.
// Its Error has the reason why there is no newer one. The caller holds w.mu.
func (w *State) lastKnown(reason string) diagnose.Snapshot {
	s := w.last
	switch {
	case w.known:
		s.Age = text.Seconds(time.Since(w.at))
	case w.Own != nil:
		s = operate.Bounded(w.Own())
	}
	s.Error = reason
	return s
}

// Begin runs f, and the server waits for it at its end; false: the server has ended, and f is not called.
func (w *State) Begin(f func()) bool {
	w.mu.Lock() // End ends Life under it
	defer w.mu.Unlock()
	if w.Life.Err() != nil {
		return false
	}
	w.busy.Go(f)
	return true
}

// End ends the attempt under way and prevents further ones.
func (w *State) End() {
	w.mu.Lock() // join reads Life under it
	defer w.mu.Unlock()
	w.stop()
}

// Wait waits for the attempt under way, and for what Begin started. It fails when ctx ends first.
func (w *State) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { w.busy.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("gathering the status does not end: %w", ctx.Err())
	}
}
