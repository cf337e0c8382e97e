package source

import (
	"sync"
	"sync/atomic"

	"baton/internal/redisconn"
)

// watches has the watch of every store.
var watches sync.Map

// watch is another store on the same Redis. An observer is called at its steps.
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

// watched returns another store on the same Redis. observe is called at its steps, and the previous observer is no longer called. If
// observe is nil, no observer is called.
func watched(s *redisconn.Store, observe func(step string) error) *redisconn.Store {
	if observe == nil {
		return s
	}
	found, _ := watches.Load(s)
	w := found.(*watch)
	w.observe.Store(&observe)
	return w.store
}
