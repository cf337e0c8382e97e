package status

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
	"baton/internal/text"
)

const (
	// defaultPatience is how long a request waits for the Source; with rendering
	// and a slow machine it stays below the two seconds that are promised.
	defaultPatience = 1500 * time.Millisecond
	// sourceTimeout ends an attempt to gather, so that the next one starts afresh.
	sourceTimeout = 5 * time.Second
	// shareFor is how long a Snapshot serves further requests: many open pages
	// cost Redis no more than two.
	shareFor = 500 * time.Millisecond
)

// Source gathers a Snapshot. It must return soon after ctx ends. Together with an
// error it may return a Snapshot of what the node knows by itself (NodeID, Version,
// LockKey, Role, Redis, and Jobs as configured): the rest is shown as last known.
type Source func(ctx context.Context) (Snapshot, error)

// watchConfig is what a watch is made of.
type watchConfig struct {
	source          Source
	leading         func() bool   // whether this node does, from memory
	nodeID, version string        // shown while the Source has never answered
	patience        time.Duration // 0: 1.5 s
	log             *zap.Logger
}

// watch asks a Source, one request at a time, and remembers the last good answer.
type watch struct {
	watchConfig
	live *broadcast

	life context.Context // ends when the server does
	stop context.CancelFunc
	busy sync.WaitGroup

	mu      sync.Mutex
	last    Snapshot      // the last good answer
	known   bool          // there is one
	at      time.Time     // when it came
	current Snapshot      // the last answer, whatever it was
	asked   time.Time     // when that came
	flight  chan struct{} // closed when the attempt under way ends; nil: none is
}

func newWatch(c watchConfig) *watch {
	if c.patience <= 0 {
		c.patience = defaultPatience
	}
	w := &watch{watchConfig: c}
	w.life, w.stop = context.WithCancel(context.Background())
	w.live = newBroadcast(w)
	return w
}

// snapshot is what the Source tells, completed with what is known without it.
func (w *watch) snapshot(ctx context.Context) (Snapshot, bool) {
	snap, known := w.read(ctx)
	if snap.NodeID == "" {
		snap.NodeID, snap.Version = w.nodeID, w.version
	}
	if snap.Error != "" {
		// The node's own role needs no Redis, and the last known one may be over.
		snap.Role = RoleConnecting
		if w.leading() {
			snap.Role = RoleLeading
		}
	}
	return diagnose.Aged(snap), known
}

// read returns the state as of now, or within w.patience the last known one,
// marked as such. ok is false when nothing is known but the error.
func (w *watch) read(ctx context.Context) (s Snapshot, ok bool) {
	flight := w.join()
	if flight != nil {
		patience := time.NewTimer(w.patience)
		defer patience.Stop()
		select {
		case <-flight:
		case <-ctx.Done():
		case <-patience.C:
			w.mu.Lock()
			defer w.mu.Unlock()
			s := w.lastKnown("Redis did not answer within " + text.Span(w.patience))
			s.Redis.OK, s.Redis.Error, s.Redis.Since = false, "no answer within "+text.Span(w.patience), time.Time{}
			return s, w.known
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current, w.known
}

// join returns the attempt under way, started now if there is none; nil when the
// last answer is young enough to be used again.
func (w *watch) join() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flight != nil {
		return w.flight
	}
	if !w.asked.IsZero() && time.Since(w.asked) < shareFor || w.life.Err() != nil {
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

// outdate has the state gathered anew for the next request: an order has changed it.
func (w *watch) outdate() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked, w.flight = time.Time{}, nil
}

// ask calls the Source. It runs outside of any request, where a panic would end
// the daemon and its leadership with it.
func (w *watch) ask() (s Snapshot, err error) {
	ctx, cancel := context.WithTimeout(w.life, sourceTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("gathering the status panicked: %v", p)
			w.log.Error("gathering the status panicked", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		}
	}()
	return w.source(ctx)
}

// take stores an answer. The caller holds w.mu.
func (w *watch) take(s Snapshot, err error) {
	w.asked = time.Now()
	s = operate.Bounded(s)
	if err == nil {
		s.AgeMS, s.Error = 0, ""
		w.last, w.current, w.known, w.at = s, s, true, w.asked
		return
	}
	w.log.Debug("status is incomplete", zap.Error(err))
	w.current = complete(w.lastKnown(err.Error()), s)
}

// complete puts into old what the node knows by itself.
func complete(old, own Snapshot) Snapshot {
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
func (w *watch) lastKnown(reason string) Snapshot {
	s := w.last
	s.Error = reason
	if w.known {
		s.AgeMS = time.Since(w.at).Milliseconds()
	}
	return s
}

// begin has the server wait for f when it ends; false: it has ended, and f is not called.
func (w *watch) begin(f func()) bool {
	w.mu.Lock() // whoever waits has ended life under it
	defer w.mu.Unlock()
	if w.life.Err() != nil {
		return false
	}
	w.busy.Go(f)
	return true
}

// end ends the attempt under way; no other is begun.
func (w *watch) end() {
	w.mu.Lock() // join looks at life under it
	defer w.mu.Unlock()
	w.stop()
}

// wait returns once the attempt under way has ended, or with an error when ctx has.
func (w *watch) wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { w.busy.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("gathering the status does not end: %w", ctx.Err())
	}
}
