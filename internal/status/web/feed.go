package web

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Feed holds the latest of a row of values. A reader that is slow misses those in between, and
// holds up no other.
type Feed[T any] struct {
	mu      sync.Mutex
	value   T
	version int64         // counts the values; 0: there is none yet
	changed chan struct{} // closed with the next value
	over    bool

	readers int // guarded by the mutex of Feeds
	stop    context.CancelFunc
}

// Put gives all readers a value in place of the one before.
func (f *Feed[T]) Put(value T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.value = value
	f.version++
	close(f.changed)
	f.changed = make(chan struct{})
}

// Latest is the latest value, and its number. changed is closed when there is another, or when
// the feed is over.
func (f *Feed[T]) Latest() (value T, version int64, changed <-chan struct{}, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.value, f.version, f.changed, f.over
}

func (f *Feed[T]) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	close(f.changed)
}

// Source is what feeds are made of.
type Source[K comparable, T any] struct {
	Most  int               // readers at a time
	Life  context.Context   //nolint:containedctx // ends when the server does
	Begin func(func()) bool // runs a function that the server waits for; false: it has ended
	// Open returns what fills the feed of a key until its context ends; nil: there is no room.
	Open func(key K) (fill func(context.Context, *Feed[T]))
}

// Feeds are those that somebody reads: one goroutine fills a feed for all of its readers, as
// long as there are any.
type Feeds[K comparable, T any] struct {
	source Source[K, T]

	mu      sync.Mutex
	readers int
	feeds   map[K]*Feed[T]
}

// NewFeeds returns feeds without readers.
func NewFeeds[K comparable, T any](s Source[K, T]) *Feeds[K, T] {
	return &Feeds[K, T]{source: s, feeds: map[K]*Feed[T]{}}
}

// Join returns the feed of a key, to be read until leave is called. ok is false if there are too
// many readers, or the server has ended: then there is nothing to leave.
func (s *Feeds[K, T]) Join(key K) (f *Feed[T], leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers >= s.source.Most || s.source.Life.Err() != nil {
		return nil, nil, false
	}
	f = s.feeds[key]
	if f == nil {
		fill := s.source.Open(key)
		if fill == nil {
			return nil, nil, false
		}
		ctx, stop := context.WithCancel(s.source.Life)
		f = &Feed[T]{changed: make(chan struct{}), stop: stop}
		if !s.source.Begin(func() { defer f.end(); fill(ctx, f) }) {
			stop()
			return nil, nil, false
		}
		s.feeds[key] = f
	}
	f.readers++
	s.readers++
	return f, sync.OnceFunc(func() { s.leave(key, f) }), true
}

// leave ends a feed with its last reader.
func (s *Feeds[K, T]) leave(key K, f *Feed[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers--
	if f.readers--; f.readers == 0 {
		f.stop()
		delete(s.feeds, key)
	}
}

// Count is how many feeds there are, and how many readers they have together.
func (s *Feeds[K, T]) Count() (feeds, readers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.feeds), s.readers
}

// Follow sends what a feed holds, again whenever there is something new, until the reader or the
// feed is gone. event writes one: of a value that is new, or as a sign of life; ok is false
// if the reader may have no more.
func Follow[T any](
	w http.ResponseWriter, r *http.Request, f *Feed[T], beat time.Duration,
	event func(value T, isNew bool) (text []byte, ok bool),
) error {
	out := NewEventStream(w)
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for seen := int64(0); ; {
		value, version, changed, over := f.Latest()
		text, ok := event(value, version != seen)
		if over || !ok {
			return nil
		}
		if seen = version; len(text) > 0 {
			if err := out.Send(text); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-r.Context().Done():
			return nil
		}
	}
}
