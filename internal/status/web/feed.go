package web

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Feed holds the latest value of a series. A slow reader misses values in between and does
// not delay other readers.
type Feed[T any] struct {
	mu      sync.Mutex
	value   T
	version int64         // counts the values; 0: no value yet
	changed chan struct{} // closed with the next value
	over    bool

	readers int // guarded by the mutex of Feeds
	stop    context.CancelFunc
}

// Put replaces the value for all readers.
func (f *Feed[T]) Put(value T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.value = value
	f.version++
	close(f.changed)
	f.changed = make(chan struct{})
}

// Latest returns the latest value and its version. changed closes with the next value, or
// when the feed is over.
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

// Source has the limits of feeds and opens them.
type Source[K comparable, T any] struct {
	Most  int               // readers at a time
	Life  context.Context   //nolint:containedctx // ends when the server does
	Begin func(func()) bool // runs a function that the server waits for; false: the server has ended
	// Open returns the function that fills the feed of a key until its context ends; nil: there is no room.
	Open func(key K) (fill func(context.Context, *Feed[T]))
}

// Feeds has the feeds with at least one reader. One goroutine fills a feed for all its
// readers, until the last one leaves.
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

// Join returns the feed of a key. The reader calls leave when it is done. ok is false if there
// are too many readers or the server has ended: then leave is nil.
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

// Count returns the number of feeds and of all their readers.
func (s *Feeds[K, T]) Count() (feeds, readers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.feeds), s.readers
}

// Follow sends the value of a feed, and every new value, until the reader leaves or the feed
// ends. event makes the text: of a new value, or after each beat of the old one as a sign of
// life. ok is false if the reader has lost its access.
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
