package job

import (
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	// namedAtMost is the maximum number of jobs named in a log line.
	namedAtMost = 10
	// gatherFor is how long lost runs are gathered for one line, because a dead leader leaves a lost run for each running job.
	gatherFor = time.Second
)

// groupedRuns gathers runs with the same result for one log line.
type groupedRuns struct {
	mu   sync.Mutex
	runs int
	jobs []string
	why  string
}

// add adds a run and reports whether it is the first run of the group.
func (t *groupedRuns) add(job, why string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs++
	t.why = why
	if !slices.Contains(t.jobs, job) {
		t.jobs = append(t.jobs, job)
	}
	return t.runs == 1
}

// take returns the fields of the group's log line, and clears the group. It returns nil if the group is empty.
func (t *groupedRuns) take() []zap.Field {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs == 0 {
		return nil
	}
	fields := append(jobFields(t.jobs), zap.Int("runs", t.runs), zap.String("error", t.why))
	t.runs, t.jobs = 0, nil
	return fields
}

// jobFields returns two log fields: the names of the first jobs, and the number of all jobs.
func jobFields(jobs []string) []zap.Field {
	return []zap.Field{zap.Strings("jobs", jobs[:min(len(jobs), namedAtMost)]), zap.Int("all_jobs", len(jobs))}
}

// groupedMisses gathers the slots that were not run for one reason. They get one log line, because such a reason often applies to all jobs.
type groupedMisses struct {
	level zapcore.Level
	jobs  []string
	slots int
	last  time.Time // the latest slot
	err   error     // the first error of a slot
}

// gather adds missed slots to the group of their reason. It reports whether these slots are the first since reportMisses was called,
// whatever their reason is.
func (r *reporter) gather(m Missed, level zapcore.Level) bool {
	first := len(r.missed) == 0
	if first {
		r.missed = map[Reason]*groupedMisses{}
	}
	t := r.missed[m.Reason]
	if t == nil {
		t = &groupedMisses{level: level}
		r.missed[m.Reason] = t
	}
	t.level, t.slots, t.last = max(t.level, level), t.slots+m.Count, latest(t.last, m.Slot)
	if !slices.Contains(t.jobs, m.Job) {
		t.jobs = append(t.jobs, m.Job)
	}
	if t.err == nil {
		t.err = m.Err
	}
	return first
}

// reportMisses logs the slots that were not run, with one line for each reason.
func (r *reporter) reportMisses() {
	for _, reason := range slices.Sorted(maps.Keys(r.missed)) {
		t := r.missed[reason]
		of := jobFields(t.jobs)
		if len(t.jobs) == 1 {
			of = []zap.Field{zap.String("job", t.jobs[0])}
		}
		r.log.Log(t.level, "slots were not run", append(of, missedFields(reason, t.slots, t.last, t.err)...)...)
	}
	r.missed = nil
}

func missedFields(reason Reason, slots int, last time.Time, err error) []zap.Field {
	fields := []zap.Field{zap.String("reason", string(reason)), zap.Int("slots", slots), zap.Time("slot", last)}
	if err != nil {
		fields = append(fields, zap.Error(err))
	}
	return fields
}

// reportLost logs the runs that were lost with their leader.
func (r *reporter) reportLost() {
	if fields := r.orphans.take(); fields != nil {
		r.log.Warn("runs were lost with their leader", fields...)
	}
}

// reportCut logs the runs that the end of the term has cancelled.
func (r *reporter) reportCut() {
	if fields := r.cut.take(); fields != nil {
		r.log.Info("runs were cancelled because the term ended", fields...)
	}
}
