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

// follower follows the masters of a store for all captures of that store, with one connection to each master.
type follower struct {
	store  *redisconn.Store
	db     int
	number string // db as a text

	mu    sync.Mutex
	feeds []*feed
	watch *watch        // nil if there are no feeds
	ended chan struct{} // closed when the previous watch has ended; nil if there was no previous watch
	shut  bool
}

// watch finds the masters, and has a stream reader for each master. It ends when the last feed is removed.
type watch struct {
	follower *follower
	readers  []*streamReader // written with follower.mu locked, by the watch's goroutine
	check    chan struct{}
	end      func() // ends the watch and its readers, and waits until they have ended
}

// checkEvery is the pause before the watch asks the nodes of a Cluster for their slots again.
const checkEvery = time.Second

func newFollower(store *redisconn.Store) *follower {
	return &follower{store: store, db: store.Database(), number: strconv.Itoa(store.Database())}
}

// followerOf returns the follower of a store. It creates the follower if necessary.
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

// add makes a feed receive changes. All readers join their streams again, at the lowest position of all feeds, so that the new feed
// receives the changes after its own position.
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

// remove makes a feed receive no more changes. When the last feed is removed, remove also ends all readers.
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

// currentFeeds returns the present feeds.
func (h *follower) currentFeeds() []*feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.feeds // this slice never changes in place
}

// masters returns the masters that are followed.
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

// checkMasters makes the watch look for the masters immediately.
func (h *follower) checkMasters() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watch != nil {
		wake(h.watch.check)
	}
}

// wake adds an entry to a channel, unless the channel already has an entry. The channel has room for only one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// begin starts a watch, which follows the masters only after the previous watch has ended. Otherwise a reader of the previous watch could
// overwrite the entry of a new reader in the marks.
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
			<-ctx.Done() // after a failover the master has the same name
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

// updateReaders adds and ends readers, so that there is one for each present master.
func (w *watch) updateReaders(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // treated like an error, as in other parts of a job
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
		r.end() // before the other readers are changed, because another reader may continue from this reader's position
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
