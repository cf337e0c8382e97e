package sqlstore

import (
	"sync"

	"baton/internal/flush"
)

// maxPlans bounds a cache: a plan is replaced when its table or its configuration
// changes, and the old one is never seen again.
const maxPlans = 64

// planCache keeps what a kind of database has compiled of a plan.
type planCache[T any] struct{ cache[*flush.Plan, T] }

// cache keeps what was made of a key, the last maxPlans or so.
type cache[K comparable, T any] struct {
	mu    sync.Mutex
	plans map[K]T
}

func (c *cache[K, T]) get(p K, compile func(K) T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.locked(p, compile)
}

// locked is get for who holds mu already.
func (c *cache[K, T]) locked(p K, compile func(K) T) T {
	if compiled, ok := c.plans[p]; ok {
		return compiled
	}
	if c.plans == nil || len(c.plans) >= maxPlans {
		c.plans = make(map[K]T)
	}
	compiled := compile(p)
	c.plans[p] = compiled
	return compiled
}
