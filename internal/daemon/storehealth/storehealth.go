// Package storehealth checks whether the stores that jobs read answer. These stores are separate from the Redis that has the lock, and the
// election does not need them.
package storehealth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/daemon/outage"
	"baton/internal/daemon/site"
	"baton/internal/diagnose"
	"baton/internal/redisconn"
)

// pingEvery is the interval between two pings of a store.
const pingEvery = 2 * time.Second

// Health watches the stores of a node, except the Redis that has the lock. A nil Health watches no store.
type Health struct {
	log *zap.Logger
	up  func(store string, up bool) // is called repeatedly with the state of a store

	mu     sync.Mutex
	stores map[string]*watchedStore // by name
	closed bool
}

// watchedStore is one store.
type watchedStore struct {
	name   string
	redis  *redisconn.Store
	outage *outage.Outage
	stop   context.CancelFunc
	over   chan struct{} // closed when no goroutine asks the store any more

	mu    sync.Mutex
	err   error     // why the store does not answer; nil: it answers
	since time.Time // since when err has its value
	heard bool      // the store was asked at least once
}

// New returns a Health without stores. It calls the function up whenever a store becomes available or unavailable.
func New(log *zap.Logger, up func(store string, up bool)) *Health {
	return &Health{log: log, up: up, stores: map[string]*watchedStore{}}
}

// Use makes the Health watch exactly these stores from now on. It returns the names of the stores that it no longer watches.
func (h *Health) Use(stores site.Stores) (gone []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	for name, w := range h.stores {
		if stores[name] != w.redis {
			w.close()
			delete(h.stores, name)
			if stores[name] == nil {
				gone = append(gone, name)
			}
		}
	}
	for name, redis := range stores {
		if name == "" || h.stores[name] != nil {
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		w := &watchedStore{
			name: name, redis: redis, stop: stop, over: make(chan struct{}), since: time.Now(),
			outage: outage.New(h.log.With(zap.String("store", name), zap.String("redis", redis.Host()))),
		}
		h.stores[name] = w
		h.up(name, true) // until the store is known to be away
		go w.follow(ctx, h.up)
	}
	return gone
}

// Close stops watching all stores.
func (h *Health) Close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, w := range h.stores {
		w.close()
	}
}

// close ends the requests to one store and waits for their end, because the caller closes the store's connections next.
func (w *watchedStore) close() {
	w.stop()
	<-w.over
	w.outage.Close()
}

// follow pings the store until ctx ends.
func (w *watchedStore) follow(ctx context.Context, up func(store string, up bool)) {
	defer close(w.over)
	for {
		asking, cancel := context.WithTimeout(ctx, w.redis.Timeout())
		err := w.redis.Ping(asking)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, redisconn.ErrRefused) && redisconn.Unavailable(err) == "" {
			err = nil // the store answers, although the user lacks the permission for this command
		}
		w.outage.Asked(err)
		w.note(err)
		up(w.name, err == nil)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pingEvery):
		}
	}
}

func (w *watchedStore) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.heard || (err == nil) != (w.err == nil) {
		w.since = time.Now()
	}
	w.heard, w.err = true, err
}

func (h *Health) of(store string) *watchedStore {
	if h == nil || store == "" {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stores[store]
}

// Away returns why a store is unavailable. It returns nil if the store answers or its state is unknown. It also returns nil for the Redis
// that has the lock, and for a Cluster, because the other masters of the Cluster may answer.
func (h *Health) Away(store string) error {
	w := h.of(store)
	if w == nil || w.redis.IsCluster() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Error is the error of a run whose store is unavailable.
type Error struct {
	Store string
	Err   error
}

// Error implements error. The text contains the store's name, and the names of the store's own settings.
func (e *Error) Error() string {
	return fmt.Sprintf("store %s: %s", e.Store, site.InStore(e.Store, e.Err.Error()))
}

// Unwrap returns the store's own error.
func (e *Error) Unwrap() error { return e.Err }

// Blame returns the error with the name of the store, if the store is the reason for the error.
func (h *Health) Blame(store string, err error) error {
	if h.of(store) == nil || redisconn.Unavailable(err) == "" {
		return err
	}
	return &Error{store, err}
}

// Tried records that a run failed with the error e, for the log lines about the store's outage.
func (h *Health) Tried(job string, e *Error) {
	if w := h.of(e.Store); w != nil {
		w.outage.Tried(job, e.Err)
	}
}

// Explains reports whether the log lines about the store's outage already say why a run failed with e.
func (h *Health) Explains(e *Error) bool {
	w := h.of(e.Store)
	return w != nil && w.outage.Explains(e.Err)
}

// States returns the state of each store, by name.
func (h *Health) States() []diagnose.Store {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []diagnose.Store
	for _, name := range slices.Sorted(maps.Keys(h.stores)) {
		all = append(all, h.stores[name].state())
	}
	return all
}

func (w *watchedStore) state() diagnose.Store {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := diagnose.Store{Name: w.name, Redis: diagnose.Redis{Host: w.redis.Host(), OK: w.err == nil, Since: w.since}}
	if w.err != nil {
		s.Error = site.InStore(w.name, w.err.Error())
	}
	return s
}
