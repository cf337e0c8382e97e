package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"baton/internal/redisconn"
	"baton/internal/redisconn/follow"
)

// hub follows the masters of a store for all captures in it: with one connection to each.
type hub struct {
	store  *redisconn.Store
	db     int
	number string // db as a text

	mu    sync.Mutex
	feeds []*feed
	watch *watch        // nil: there are no feeds
	ended chan struct{} // closed once the watch before has ended; nil: this is the first one
	shut  bool
}

// watch knows the masters, and has a line to each. It ends with the last feed.
type watch struct {
	hub   *hub
	lines []*line // written with hub.mu locked, by its goroutine
	nudge chan struct{}
	end   func() // ends it with all lines, and waits for their end
}

// lookEvery is how often the watch asks the nodes of a Cluster for their slots.
const lookEvery = time.Second

func newHub(store *redisconn.Store) *hub {
	return &hub{store: store, db: store.Database(), number: strconv.Itoa(store.Database())}
}

// hubOf is the hub of a store, made now if it does not exist.
func hubOf(store *redisconn.Store) *hub {
	return store.Attached("captures", func() io.Closer { return newHub(store) }).(*hub)
}

// Close ends the hub.
func (h *hub) Close() error {
	h.mu.Lock()
	w := h.watch
	h.watch, h.feeds, h.shut = nil, nil, true
	h.mu.Unlock()
	if w != nil {
		w.end()
	}
	return nil
}

// add makes a feed receive changes. All lines join their streams once more, at the least of all places, so that the feed receives the
// changes after its own place.
func (h *hub) add(f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shut {
		f.ends()
		return
	}
	h.feeds = append(h.feeds, f)
	if h.watch == nil {
		h.watch = h.begin()
		return
	}
	f.expect(len(h.watch.lines))
	for _, l := range h.watch.lines {
		l.joinAnew()
	}
}

// remove ends that; with the last feed it ends all lines.
func (h *hub) remove(f *feed) {
	h.mu.Lock()
	h.feeds = slices.DeleteFunc(slices.Clone(h.feeds), func(other *feed) bool { return other == f })
	var w *watch
	if len(h.feeds) == 0 {
		w, h.watch = h.watch, nil
	}
	h.mu.Unlock()
	if w != nil {
		w.end()
	}
}

// listeners are the present feeds.
func (h *hub) listeners() []*feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.feeds // a slice that never changes in place
}

// masters are the followed masters.
func (h *hub) masters() (all []*redisconn.Server) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watch != nil {
		for _, l := range h.watch.lines {
			all = append(all, l.server)
		}
	}
	return all
}

// doubt makes the watch look for the masters now.
func (h *hub) doubt() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watch != nil {
		poke(h.watch.nudge)
	}
}

// poke puts an entry into a channel that has room for one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// begin follows the masters, once the watch before has ended: its lines would take the places of the new ones.
func (h *hub) begin() *watch {
	ctx, cancel := context.WithCancel(context.Background())
	before, done := h.ended, make(chan struct{})
	h.ended = done
	w := &watch{hub: h, nudge: make(chan struct{}, 1)}
	w.end = func() {
		cancel()
		<-done
	}
	go func() {
		defer close(done)
		defer func() {
			for _, l := range w.lines {
				l.end()
			}
		}()
		if before != nil {
			<-before
		}
		w.run(ctx)
	}()
	return w
}

func (w *watch) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := lookEvery
		if err := w.look(ctx); err != nil && len(w.lines) == 0 && ctx.Err() == nil {
			for _, f := range w.hub.listeners() {
				f.failed(err)
			}
		}
		if len(w.lines) > 0 && !w.hub.store.IsCluster() {
			<-ctx.Done() // the master has the same name after a failover
			return
		}
		select {
		case <-time.After(pause):
		case <-w.nudge:
			select { // a failover takes a moment
			case <-time.After(firstPause):
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
	}
}

// look updates the lines to the present masters.
func (w *watch) look(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // a failed run, as in any other part of a job
			err = fmt.Errorf("following the replication stream panicked: %v\n%s", p, debug.Stack())
		}
	}()
	servers, err := w.hub.store.Masters(ctx)
	if err != nil {
		return err
	}
	var lines, gone []*line
	for _, l := range w.lines {
		if slices.Contains(servers, l.server) {
			lines = append(lines, l)
			continue
		}
		l.end() // first: another line may continue from its place
		gone = append(gone, l)
	}
	old := len(lines)
	for _, s := range servers {
		if !slices.ContainsFunc(lines, func(l *line) bool { return l.server == s }) {
			lines = append(lines, newLine(w.hub, s))
		}
	}
	w.hub.mu.Lock()
	w.lines = lines
	if w.hub.watch == w {
		for _, f := range w.hub.feeds {
			f.expect(len(lines))
		}
	}
	w.hub.mu.Unlock()
	for _, l := range gone { // a run may wait for changes that this line would have received
		for _, f := range w.hub.listeners() {
			f.failed(fmt.Errorf("redis %s: %w", l.server.Address(), follow.ErrNotMaster))
		}
	}
	for _, l := range lines[old:] {
		l.begin(ctx)
	}
	var failed []error
	if w.hub.store.IsCluster() {
		for _, l := range lines[:old] {
			failed = append(failed, l.lookAtSlots(ctx))
		}
	}
	return errors.Join(failed...)
}
