package daemon

import (
	"context"
	"time"

	"baton/internal/flush/source/staging"
)

// idle says which flushes would find nothing to do if they began now: a job.Workload's Idle. Only
// one that has flushed under this term is looked at: before that, and after it has failed, a run
// learns of the table, the fence and the database what no look at Redis tells.
func (r *reign) idle(ctx context.Context, jobs []string) []bool {
	began := time.Now()
	flushes := r.settled(jobs)
	keys := make([][]string, len(jobs))
	for i, f := range flushes {
		if f != nil {
			keys[i] = f.IdleKeys
		}
	}
	idle := staging.Idle(ctx, r.data, keys)
	for i, is := range idle {
		if is {
			flushes[i].idled(began)
		}
	}
	return idle
}

// settled are the flushes of jobs of which a run would do nothing but read what is pending; nil for others.
func (r *reign) settled(jobs []string) []*flushJob {
	r.mu.Lock()
	defer r.mu.Unlock()
	flushes := make([]*flushJob, len(jobs))
	for i, name := range jobs {
		if f := r.bound[name].flush; f != nil && f.pipeline.Settled(f.term) {
			flushes[i] = f
		}
	}
	return flushes
}

// idled notes that nothing was pending at a time.
func (f *flushJob) idled(at time.Time) {
	f.freshen(at)
	f.behind(0, at)
}
