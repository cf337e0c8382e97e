package sql

import (
	"slices"
	"strings"
	"sync"

	"baton/internal/flush/row"
)

// maxPlans bounds a cache: a plan is replaced when its table or its configuration changes, and the old one is never used again.
const maxPlans = 64

// PlanCache keeps a dialect's compiled statements by plan.
type PlanCache[T any] struct{ cache[*row.Plan, T] }

// cache keeps values by key, about the last maxPlans.
type cache[K comparable, T any] struct {
	mu    sync.Mutex
	plans map[K]T
}

func (c *cache[K, T]) Get(p K, compile func(K) T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
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

// IsKey reports whether a column of the plan is one of its key.
func IsKey(p *row.Plan, column int) bool {
	return slices.Contains(p.Key, column)
}

// HasColumn reports whether the plan writes a column of that name.
func HasColumn(p *row.Plan, name string) bool {
	return slices.ContainsFunc(p.Columns, func(c row.PlanColumn) bool { return c.Name == name })
}

// Repeat lists the same n times: "?, ?, ?".
func Repeat(what string, n int) string {
	return strings.TrimSuffix(strings.Repeat(what+", ", n), ", ")
}
