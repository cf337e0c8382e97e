package sql

import (
	"slices"
	"strings"
	"sync"

	"baton/internal/flush/row"
)

// maxPlans limits the number of plans in a cache. A plan is replaced when its table or its configuration changes, and the old plan is never
// used again. So without a limit the cache would grow.
const maxPlans = 64

// PlanCache keeps the statements that a dialect has compiled for each plan.
type PlanCache[T any] struct{ cache[*row.Plan, T] }

// cache contains values by key. When it contains maxPlans values, it drops all of them before it adds another one.
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

// IsKey reports whether the column with this index belongs to the plan's key.
func IsKey(p *row.Plan, column int) bool {
	return slices.Contains(p.Key, column)
}

// HasColumn reports whether the plan writes a column of that name.
func HasColumn(p *row.Plan, name string) bool {
	return slices.ContainsFunc(p.Columns, func(c row.PlanColumn) bool { return c.Name == name })
}

// Repeat returns a list that contains the text in the argument what n times, such as "?, ?, ?".
func Repeat(what string, n int) string {
	return strings.TrimSuffix(strings.Repeat(what+", ", n), ", ")
}
