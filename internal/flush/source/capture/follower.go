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

// follower follows the masters of a store for all captures in it, with one connection to each.
type follower struct {
	store  *redisconn.Store
	db     int
	number string // db as a text

	mu    sync.Mutex
	feeds []*feed
	watch *watch        // nil: there are no feeds
	ended chan struct{} // closed once the watch before has ended; nil: this is the first one
	shut  bool
}

// watch knows the masters, and has a stream reader for each. It ends with the last feed.
type watch struct {
	follower *follower
	readers  []*streamReader // written with follower.mu locked, by its goroutine
	check    chan struct{}
	end      func() // ends it with all readers, and waits for their end
}

// checkEvery is how often the watch asks the nodes of a Cluster for their slots.
const checkEvery = time.Second

func newFollower(store *redisconn.Store) *follower {
	return &follower{store: store, db: store.Database(), number: strconv.Itoa(store.Database())}
}

// followerOf is the follower of a store, made now if it does not exist.
func followerOf(store *redisconn.Store) *follower {
	return store.Attached("captures", func() io.Closer { return newFollower(store) }).(*follower)
}

// Close ends the follower.
func (h *follower) Close() error {
	h.mu.Lock()
	w := h.watch
	h.watch, h.feeds, h.shut = nil, nil, true
	h.mu.Unlock()
	if w != nil {
		w.end()
	}
	return nil
}

// add makes a feed receive changes. All readers join their streams once more, at the least of all places, so that the feed receives the
// changes after its own place.
func (h *follower) add(f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shut {
		f.endWaits()
		return
	}
	h.feeds = append(h.feeds, f)
	if h.watch == nil {
		h.watch = h.begin()
		return
	}
	f.expect(len(h.watch.readers))
	for _, r := range h.watch.readers {
		r.rejoin()
	}
}

// remove ends that; with the last feed it ends all readers.
func (h *follower) remove(f *feed) {
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

// currentFeeds are the present feeds.
func (h *follower) currentFeeds() []*feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.feeds // a slice that never changes in place
}

// masters are the followed masters.
func (h *follower) masters() (all []*redisconn.Server) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watch != nil {
		for _, r := range h.watch.readers {
			all = append(all, r.server)
		}
	}
	return all
}

// checkMasters makes the watch look for the masters now.
func (h *follower) checkMasters() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watch != nil {
		wake(h.watch.check)
	}
}

// wake puts an entry into a channel that has room for one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// begin follows the masters, once the watch before has ended: its readers would take the places of the new ones.
func (h *follower) begin() *watch {
	ctx, cancel := context.WithCancel(context.Background())
	before, done := h.ended, make(chan struct{})
	h.ended = done
	w := &watch{follower: h, check: make(chan struct{}, 1)}
	w.end = func() {
		cancel()
		<-done
	}
	go func() {
		defer close(done)
		defer func() {
			for _, r := range w.readers {
				r.end()
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
		pause := checkEvery
		if err := w.updateReaders(ctx); err != nil && len(w.readers) == 0 && ctx.Err() == nil {
			for _, f := range w.follower.currentFeeds() {
				f.noteFailure(err)
			}
		}
		if len(w.readers) > 0 && !w.follower.store.IsCluster() {
			<-ctx.Done() // the master has the same name after a failover
			return
		}
		select {
		case <-time.After(pause):
		case <-w.check:
			select { // a failover takes a moment
			case <-time.After(firstPause):
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
	}
}

// updateReaders updates the readers to the present masters.
func (w *watch) updateReaders(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // a failed run, as in any other part of a job
			err = fmt.Errorf("following the replication stream panicked: %v\n%s", p, debug.Stack())
		}
	}()
	servers, err := w.follower.store.Masters(ctx)
	if err != nil {
		return err
	}
	var readers, gone []*streamReader
	for _, r := range w.readers {
		if slices.Contains(servers, r.server) {
			readers = append(readers, r)
			continue
		}
		r.end() // first: another reader may continue from its place
		gone = append(gone, r)
	}
	old := len(readers)
	for _, s := range servers {
		if !slices.ContainsFunc(readers, func(r *streamReader) bool { return r.server == s }) {
			readers = append(readers, newStreamReader(w.follower, s))
		}
	}
	w.follower.mu.Lock()
	w.readers = readers
	if w.follower.watch == w {
		for _, f := range w.follower.feeds {
			f.expect(len(readers))
		}
	}
	w.follower.mu.Unlock()
	for _, r := range gone { // a run may wait for changes that this reader would have received
		for _, f := range w.follower.currentFeeds() {
			f.noteFailure(fmt.Errorf("redis %s: %w", r.server.Address(), follow.ErrNotMaster))
		}
	}
	for _, r := range readers[old:] {
		r.begin(ctx)
	}
	var failed []error
	if w.follower.store.IsCluster() {
		for _, r := range readers[:old] {
			failed = append(failed, r.checkSlots(ctx))
		}
	}
	return errors.Join(failed...)
}
