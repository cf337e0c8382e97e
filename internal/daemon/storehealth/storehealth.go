// Package storehealth knows whether the stores that jobs read answer. The election does not depend on them.
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

// Health watches the stores of a node, except the Redis that has the lock. A nil one has none.
type Health struct {
	log *zap.Logger
	up  func(store string, up bool) // is called with the state of a store, again and again

	mu     sync.Mutex
	stores map[string]*watched // by name
	closed bool
}

// watched is one store.
type watched struct {
	name   string
	redis  *redisconn.Store
	outage *outage.Outage
	stop   context.CancelFunc
	over   chan struct{} // nothing asks it any more

	mu    sync.Mutex
	err   error     // why it does not answer; nil: it does
	since time.Time // when that began
	heard bool      // it was asked
}

// New has no stores yet. up is called with what becomes of each.
func New(log *zap.Logger, up func(store string, up bool)) *Health {
	return &Health{log: log, up: up, stores: map[string]*watched{}}
}

// Use begins to ask stores, and asks those no more that are not among them. It returns the names of those.
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
		w := &watched{
			name: name, redis: redis, stop: stop, over: make(chan struct{}), since: time.Now(),
			outage: outage.New(h.log.With(zap.String("store", name), zap.String("redis", redis.Host()))),
		}
		h.stores[name] = w
		h.up(name, true) // until it is known to be away
		go w.follow(ctx, h.up)
	}
	return gone
}

// Close ends the asking.
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

// close ends the asking of one store. It waits for that: its connections are closed next.
func (w *watched) close() {
	w.stop()
	<-w.over
	w.outage.Close()
}

// follow asks for signs of life until ctx ends.
func (w *watched) follow(ctx context.Context, up func(store string, up bool)) {
	defer close(w.over)
	for {
		asking, cancel := context.WithTimeout(ctx, w.redis.Timeout())
		err := w.redis.Ping(asking)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, redisconn.ErrRefused) && redisconn.Unavailable(err) == "" {
			err = nil // it answers, though the user must not ask for this
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

func (w *watched) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.heard || (err == nil) != (w.err == nil) {
		w.since = time.Now()
	}
	w.heard, w.err = true, err
}

func (h *Health) of(store string) *watched {
	if h == nil || store == "" {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stores[store]
}

// Away returns why a store is unavailable. It returns nil if the store answers or its state is unknown, and for
// the Redis that has the lock. It also returns nil for a Cluster, because other masters may answer.
func (h *Health) Away(store string) error {
	w := h.of(store)
	if w == nil || w.redis.IsCluster() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Error is that of a run whose store does not serve it.
type Error struct {
	Store string
	Err   error
}

// Error names the store, and its settings.
func (e *Error) Error() string {
	return fmt.Sprintf("store %s: %s", e.Store, site.InStore(e.Store, e.Err.Error()))
}

// Unwrap returns the store's own error.
func (e *Error) Unwrap() error { return e.Err }

// Blame names the store in an error that is the store's fault.
func (h *Health) Blame(store string, err error) error {
	if h.of(store) == nil || redisconn.Unavailable(err) == "" {
		return err
	}
	return &Error{store, err}
}

// Tried notes the end of a run that met that error, for the log of the outage.
func (h *Health) Tried(job string, e *Error) {
	if w := h.of(e.Store); w != nil {
		w.outage.Tried(job, e.Err)
	}
}

// Explains reports whether the log of the outage says why a run failed.
func (h *Health) Explains(e *Error) bool {
	w := h.of(e.Store)
	return w != nil && w.outage.Explains(e.Err)
}

// States is how the stores answer, by name.
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

func (w *watched) state() diagnose.Store {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := diagnose.Store{Name: w.name, Redis: diagnose.Redis{Host: w.redis.Host(), OK: w.err == nil, Since: w.since}}
	if w.err != nil {
		s.Error = site.InStore(w.name, w.err.Error())
	}
	return s
}
