// Package state is what page and API share: the state of the election and its jobs, read once
// for all who ask, what of it a caller may see, and the orders, a few at a time.
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
	// defaultPatience is how long a request waits for the Source; with rendering
	// and a slow machine it stays below the two seconds that are promised.
	defaultPatience = 1500 * time.Millisecond
	// unknownPatience is that while the Source has never answered: then what the configuration says is shown.
	unknownPatience = 800 * time.Millisecond
	// SourceTimeout ends an attempt to gather, so that the next one starts afresh.
	SourceTimeout = 5 * time.Second
	// shareFor is how long a Snapshot serves further requests: many open pages
	// cost Redis no more than two.
	shareFor = 500 * time.Millisecond
)

// Source gathers a Snapshot. It must return soon after ctx ends. Together with an
// error it may return a Snapshot of what the node knows by itself (NodeID, Version,
// LockKey, Role, Redis, and Jobs as configured): the rest is shown as last known.
type Source func(ctx context.Context) (diagnose.Snapshot, error)

// Own is what a node knows without asking a server: who it is, and what its configuration says. It must not block.
type Own func() diagnose.Snapshot

// Config is what a State is made of.
type Config struct {
	Source          Source
	Own             Own           // nil: nothing is known
	Leading         func() bool   // whether this node does, from memory
	NodeID, Version string        // shown while the Source has never answered
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
	known   bool              // there is one
	at      time.Time         // when it came
	current diagnose.Snapshot // the last answer, whatever it was
	asked   time.Time         // when that came
	flight  chan struct{}     // closed when the attempt under way ends; nil: none is
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

// Snapshot is what the Source answers, completed with what is known without it.
func (w *State) Snapshot(ctx context.Context) (diagnose.Snapshot, bool) {
	snap, known := w.read(ctx)
	if snap.NodeID == "" {
		snap.NodeID, snap.Version = w.NodeID, w.Version
	}
	if snap.Error != "" {
		// The node's own role needs no Redis, and the last known one may be over.
		snap.Role = diagnose.RoleConnecting
		if w.Leading() {
			snap.Role = diagnose.RoleLeading
		}
	}
	return diagnose.Aged(snap), known
}

// read returns the state as of now, or within w.patience the last known one,
// marked as such. ok is false when nothing is known but the error.
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

// join returns the attempt under way, started now if there is none; nil when the
// last answer is young enough to be used again.
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
		} else if !w.known { // an order came meanwhile: this may be how it was before
			w.take(s, err)
			w.asked = time.Time{}
		}
		close(flight)
	})
	return flight
}

// Outdate has the state gathered anew for the next request: an order has changed it.
func (w *State) Outdate() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked, w.flight = time.Time{}, nil
}

// ask calls the Source. It runs outside of any request, where a panic would end
// the daemon and its leadership with it.
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

// complete puts into old what the node knows by itself.
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

// lastKnown is the last good Snapshot with its age and the reason why there is no
// newer one. The caller holds w.mu.
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

// Begin has the server wait for f when it ends; false: it has ended, and f is not called.
func (w *State) Begin(f func()) bool {
	w.mu.Lock() // End ends Life under it
	defer w.mu.Unlock()
	if w.Life.Err() != nil {
		return false
	}
	w.busy.Go(f)
	return true
}

// End ends the attempt under way; no other is begun.
func (w *State) End() {
	w.mu.Lock() // join reads Life under it
	defer w.mu.Unlock()
	w.stop()
}

// Wait returns once the attempt under way has ended, or with an error when ctx has.
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
