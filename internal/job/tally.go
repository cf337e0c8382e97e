package job

import (
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// namedAtMost is the maximum number of jobs named in a log line.
	namedAtMost = 10
	// gatherFor is how long lost runs are gathered for one line: a dead leader leaves one for
	// each job that ran.
	gatherFor = time.Second
)

// tally gathers runs with the same result for one log line.
type tally struct {
	mu   sync.Mutex
	runs int
	jobs []string
	why  string
}

// add reports whether it is the first.
func (t *tally) add(job, why string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs++
	t.why = why
	if !slices.Contains(t.jobs, job) {
		t.jobs = append(t.jobs, job)
	}
	return t.runs == 1
}

// take returns the fields of the line and clears the tally; nil if it is empty.
func (t *tally) take() []zap.Field {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs == 0 {
		return nil
	}
	fields := append(jobFields(t.jobs), zap.Int("runs", t.runs), zap.String("error", t.why))
	t.runs, t.jobs = 0, nil
	return fields
}

// jobFields name some of many jobs.
func jobFields(jobs []string) []zap.Field {
	return []zap.Field{zap.Strings("jobs", jobs[:min(len(jobs), namedAtMost)]), zap.Int("all_jobs", len(jobs))}
}

// reportLost logs the runs that were lost with their leader.
func (r *reporter) reportLost() {
	if fields := r.orphans.take(); fields != nil {
		r.log.Warn("runs were lost with their leader", fields...)
	}
}

// reportCut logs the runs that the end of the term has ended.
func (r *reporter) reportCut() {
	if fields := r.cut.take(); fields != nil {
		r.log.Info("the end of the term cancelled runs", fields...)
	}
}
