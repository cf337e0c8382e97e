package source

import (
	"sync"
	"sync/atomic"

	"baton/internal/redisconn"
)

// watches have the watch of every store.
var watches sync.Map

// watch is another store on the same Redis, of whose steps one observer hears.
type watch struct {
	store   *redisconn.Store
	observe atomic.Pointer[func(step string) error]
}

func (w *watch) step(step string) error {
	if observe := w.observe.Load(); observe != nil {
		return (*observe)(step)
	}
	return nil
}

// watched is a store on the same Redis of whose steps observe hears, and who heard of them
// before hears no more. nil: nobody hears.
func watched(s *redisconn.Store, observe func(step string) error) *redisconn.Store {
	if observe == nil {
		return s
	}
	found, _ := watches.Load(s)
	w := found.(*watch)
	w.observe.Store(&observe)
	return w.store
}
