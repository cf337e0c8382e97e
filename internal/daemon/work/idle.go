package work

import (
	"context"
	"time"

	"baton/internal/daemon/tasks"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

// idle implements the function Idle of job.Workload for flushes. It checks only jobs whose last run was in this term and succeeded. For all
// other jobs a run must first check the table, the fence and the database.
func (t *Term) idle(ctx context.Context, jobs []string) []bool {
	began := time.Now()
	flushes := t.settled(jobs)
	idle := make([]bool, len(jobs))
	var known []int
	for i, f := range flushes {
		if f != nil && f.stores.Away(f.store()) == nil {
			known = append(known, i)
		}
	}
	tasks.ByStore(known, func(i int) *redisconn.Store { return flushes[i].Store }, func(some []int) {
		keys := make([][]string, len(some))
		for at, i := range some {
			keys[at] = flushes[i].IdleKeys
		}
		for at, is := range staging.Idle(ctx, flushes[some[0]].Store, keys) {
			idle[some[at]] = is
		}
	})
	for i, is := range idle {
		if is {
			flushes[i].idled(began)
		}
	}
	return idle
}

// settled returns the flushes of those jobs whose next run would only read pending changes. It returns nil for each other job.
func (t *Term) settled(jobs []string) []*flushJob {
	t.mu.Lock()
	defer t.mu.Unlock()
	flushes := make([]*flushJob, len(jobs))
	for i, name := range jobs {
		if f := t.bound[name].flush; f != nil && f.pipeline.Settled(f.term) {
			flushes[i] = f
		}
	}
	return flushes
}

// idled records that no changes were pending at the time in the argument at.
func (f *flushJob) idled(at time.Time) {
	f.ran(at)
	f.behind(0, at)
}
