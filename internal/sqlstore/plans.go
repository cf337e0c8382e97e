package sqlstore

import (
	"sync"

	"baton/internal/flush"
)

// maxPlans bounds a planCache: a plan is replaced when its table or its
// configuration changes, and the old one is never seen again.
const maxPlans = 64

// planCache keeps what a kind of database has compiled of a plan.
type planCache[T any] struct {
	mu    sync.Mutex
	plans map[*flush.Plan]T
}

func (c *planCache[T]) get(p *flush.Plan, compile func(*flush.Plan) T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.locked(p, compile)
}

// locked is get for who holds mu already.
func (c *planCache[T]) locked(p *flush.Plan, compile func(*flush.Plan) T) T {
	if compiled, ok := c.plans[p]; ok {
		return compiled
	}
	if c.plans == nil || len(c.plans) >= maxPlans {
		c.plans = make(map[*flush.Plan]T)
	}
	compiled := compile(p)
	c.plans[p] = compiled
	return compiled
}
