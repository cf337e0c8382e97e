// Package state reads the state of the election and its jobs once for all requests of the page and the API. It also removes secrets for
// callers without the token, and carries out a few orders at a time.
//
//	Source      gathers a Snapshot; State calls it once for all requests that wait, and at most twice per second unless there are orders
//	State       stores the last answer of the Source, and gives this answer to all requests
//	Update      the state for the readers of the feed, about once per second, in the form for callers with and without the token
//	Public      the part of a state that callers without the token may see
//	Bounded     a Node whose answers are cut to limits, because any client may have written the texts in Redis
//	Supervised  carries out the orders of identified callers, a few at a time, and logs each order
//
// The invariants:
//
//   - A request waits 1.5 s at most for the Source, but only 0.8 s at most if the Source has never answered yet.
//   - After an order the next request gathers the state again, because the order has changed the state.
//   - An order continues if its client hangs up, but not longer than [web.OrderWithin], and not after the end of the server.
//
// What fails, and what then:
//
//   - The Source is slow or fails: the request gets the last good state, with its age and the reason. If there was no good state yet,
//     the request gets the node's own state, without an answer of a server.
//   - The Source hangs: the attempt ends after [SourceTimeout], and the next request begins a new attempt.
//   - The Source or an order panics: the panic is logged and becomes an error, so that the daemon continues to lead.
//   - Too many orders are in progress: a further order is refused at once, and the caller may give it again.
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
	// defaultPatience is the maximum time that a request waits for the Source. With this limit the answer comes within the promised two
	// seconds, even if a slow machine renders the answer.
	defaultPatience = 1500 * time.Millisecond
	// unknownPatience is the maximum time that a request waits for the Source if the Source has never answered. After that time, the
	// request gets the state that the configuration describes.
	unknownPatience = 800 * time.Millisecond
	// SourceTimeout is the time limit of one attempt to gather the state, so that a new attempt can begin.
	SourceTimeout = 5 * time.Second
	// shareFor is how long a Snapshot is used for further requests. So Redis is read at most twice per second if there are no orders,
	// regardless of the number of open pages.
	shareFor = 500 * time.Millisecond
)

// Source gathers a Snapshot. It must return soon after ctx ends. If it returns an error, it may also return a Snapshot with the data that
// the node itself knows (NodeID, Version, LockKey, Role, Redis, and Jobs as configured). The other data then comes from the last known
// state.
type Source func(ctx context.Context) (diagnose.Snapshot, error)

// Own returns the node's state without asking a server. The state contains the node's identity and configuration. Own must not block.
type Own func() diagnose.Snapshot

// Config contains the parts and settings of a State.
type Config struct {
	Source          Source
	Own             Own           // may be nil
	Leading         func() bool   // whether this node leads, from memory
	NodeID, Version string        // shown until the Source first answers
	Patience        time.Duration // 0 means 1.5 s
	Log             *zap.Logger
}

// State asks a Source once for all requests that wait, and stores the last good answer. A new call of the Source may begin during an
// earlier call only after an order.
type State struct {
	Config
	live *web.Feeds[struct{}, *Update]

	Life context.Context // ends when the server ends
	stop context.CancelFunc
	busy sync.WaitGroup

	mu      sync.Mutex
	last    diagnose.Snapshot // the last good answer
	known   bool              // whether last is set
	at      time.Time         // the time of last
	current diagnose.Snapshot // the last answer, which may be an error
	asked   time.Time         // the time of current
	flight  chan struct{}     // closed when the attempt in progress ends; nil if there is none
}

// New returns a State with the configuration c.
func New(c Config) *State {
	if c.Patience <= 0 {
		c.Patience = defaultPatience
	}
	w := &State{Config: c}
	w.Life, w.stop = context.WithCancel(context.Background())
	w.live = newLive(w)
	return w
}

// Snapshot returns the Source's answer, completed with data from the node's memory. The second result is false until the Source has
// answered once without an error.
func (w *State) Snapshot(ctx context.Context) (diagnose.Snapshot, bool) {
	snap, known := w.read(ctx)
	if snap.NodeID == "" {
		snap.NodeID, snap.Version = w.NodeID, w.Version
	}
	if snap.Error != "" {
		// The node knows its own role even if Redis does not answer, and the last known role may be out of date.
		snap.Role = diagnose.RoleConnecting
		if w.Leading() {
			snap.Role = diagnose.RoleLeading
		}
	}
	return diagnose.Aged(snap), known
}

// read returns the current state. After w.patience it returns the last known state, with the reason why it is not up to date. ok is false
// until the Source has answered once without an error.
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

// join returns a channel that is closed when the present attempt to gather the state ends. If there is no attempt, join starts one. It
// returns nil if the last answer is recent enough to be used again, or if the server has ended.
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
		} else if !w.known { // an order came in the meantime, so this answer may be older than the order
			w.take(s, err)
			w.asked = time.Time{}
		}
		close(flight)
	})
	return flight
}

// Outdate makes the next request gather the state again, because an order has changed the state.
func (w *State) Outdate() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked, w.flight = time.Time{}, nil
}

// ask calls the Source. It runs outside of any request, so it must recover from a panic, which would otherwise end the daemon and its
// leadership.
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

// take stores an answer of the Source. The caller holds w.mu.
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

// complete copies the data that the node itself knows from the Snapshot own into the Snapshot old.
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

// lastKnown returns the last good Snapshot with its age. If there is none, it returns the node's own Snapshot. The field Error contains the
// reason why there is no newer Snapshot. The caller holds w.mu.
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

// Begin runs f in a goroutine, and the server does not end before f has returned. If the server has ended, Begin returns false and does not
// call f.
func (w *State) Begin(f func()) bool {
	w.mu.Lock() // End ends Life while it holds w.mu
	defer w.mu.Unlock()
	if w.Life.Err() != nil {
		return false
	}
	w.busy.Go(f)
	return true
}

// End cancels the present attempt to gather the state, and prevents further attempts.
func (w *State) End() {
	w.mu.Lock() // join reads Life while it holds w.mu
	defer w.mu.Unlock()
	w.stop()
}

// Wait waits for the present attempt to gather the state, and for the functions that Begin has started. It returns an error if ctx ends
// first.
func (w *State) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { w.busy.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("collecting the status takes too long: %w", ctx.Err())
	}
}
