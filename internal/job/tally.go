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

// missTally gathers slots that were not run for the same reason: a loss concerns all jobs.
type missTally struct {
	level zapcore.Level
	jobs  []string
	slots int
	last  time.Time // of the slots
	err   error     // of the first of them that has one
}

// gather reports whether the slots are the first.
func (r *reporter) gather(m Missed, level zapcore.Level) bool {
	first := len(r.missed) == 0
	if first {
		r.missed = map[Reason]*missTally{}
	}
	t := r.missed[m.Reason]
	if t == nil {
		t = &missTally{level: level}
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

// reportMisses logs the slots that were not run, a line for each reason.
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

// reportCut logs the runs that the end of the term has ended.
func (r *reporter) reportCut() {
	if fields := r.cut.take(); fields != nil {
		r.log.Info("the end of the term cancelled runs", fields...)
	}
}
