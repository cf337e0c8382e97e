package web

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Feed contains the latest value of a series. A slow reader misses intermediate values and does not delay other readers.
type Feed[T any] struct {
	mu      sync.Mutex
	value   T
	version int64         // counts the values; 0: no value yet
	changed chan struct{} // closed with the next value
	over    bool

	readers int // protected by the mutex of Feeds
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

// Latest returns the latest value and its version. The channel changed is closed when the next value is set, or when the feed ends. The
// result over is true after the end.
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

// Source contains the limits of Feeds, and the function that opens a feed.
type Source[K comparable, T any] struct {
	Most  int               // the maximum number of readers at the same time
	Life  context.Context   //nolint:containedctx // ends when the server does
	Begin func(func()) bool // runs a function that the server waits for; false if the server has ended
	// Open returns the function that updates the feed of a key until its context ends. It returns nil if there is no room for the feed.
	Open func(key K) (fill func(context.Context, *Feed[T]))
}

// Feeds contains the feeds that have at least one reader. One goroutine updates a feed for all its readers, until the last reader leaves.
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

// Join returns the feed of a key. A reader that no longer needs the feed must call the function leave. If there are too many readers or the
// server has ended, ok is false and leave is nil.
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

// leave removes a reader from a feed. It ends the feed if the feed has no other reader.
func (s *Feeds[K, T]) leave(key K, f *Feed[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers--
	if f.readers--; f.readers == 0 {
		f.stop()
		delete(s.feeds, key)
	}
}

// Count returns the number of feeds, and the number of the readers of all feeds.
func (s *Feeds[K, T]) Count() (feeds, readers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.feeds), s.readers
}

// Follow sends the current value of a feed and every new value, until the reader leaves or the feed ends. Follow calls the function event
// with each new value. After each interval of the length beat, it calls event with the old value, as a sign of life. Follow sends the text
// that event returns. If event returns false, the reader has lost its access, and Follow returns nil.
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
