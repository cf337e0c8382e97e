package metrics

import (
	"math"
	"time"

	"baton/internal/diagnose"
)

// currentFor is the maximum age of a job's state that is shown unchanged. Normally the node reads the state again earlier. If the state is
// older, the servers do not answer, so the lateness grows with time.
const currentFor = time.Minute

// knownJob is the last state of a job that this node has read, as leader or as standby. It is kept after the end of the term, because there
// may be no other node to report it.
type knownJob struct {
	job      diagnose.Job
	at       time.Time // when this node read it
	measured time.Time // when a flush's lag was measured
	lag      time.Duration
	// uncounted means that the backlog and the lag are unknown.
	uncounted bool
}

func (m *Metrics) learn(job string, how func(*knownJob)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.jobs[job] {
		return // the job was removed, but its last run may still report
	}
	k, ok := m.known[job]
	if !ok {
		k = &knownJob{}
		m.known[job] = k
	}
	how(k)
}

// refresh updates the gauges that change with time.
func (m *Metrics) refresh(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for job, k := range m.known {
		j, asOf := k.judged(now)
		m.jobOverdue.WithLabelValues(job).Set(j.Overdue(asOf).Seconds())
		m.jobLate.WithLabelValues(job).Set(truth(j.IsLate(asOf) != ""))
		m.jobUnscheduled.WithLabelValues(job).Set(truth(j.Unscheduled != nil))
		m.jobAge.WithLabelValues(job).Set(k.age(now, m.flushes[job]))
		if m.flushes[job] && !k.uncounted {
			m.flushLag.WithLabelValues(job).Set(k.lagAt(now).Seconds())
		}
	}
}

// judged returns a job, and the time that decides whether the job is late. For a state that is too old, this time is now, and a run
// that was in progress when the node read the state no longer counts.
func (k *knownJob) judged(now time.Time) (diagnose.Job, time.Time) {
	j, asOf := k.job, k.at
	if now.Sub(k.at) > currentFor {
		j.Awaited, asOf = false, now
	}
	return j, asOf
}

func (k *knownJob) lagAt(now time.Time) time.Duration {
	if age := now.Sub(k.measured); k.lag > 0 && age > currentFor {
		return k.lag + age
	}
	return max(k.lag, 0)
}

// age returns the age in seconds of the older reading: the reading of the state, or the reading of a flush's lag.
func (k *knownJob) age(now time.Time, flush bool) float64 {
	at := k.at
	if flush && k.measured.Before(at) {
		at = k.measured
	}
	if at.IsZero() {
		return math.Inf(1)
	}
	return max(now.Sub(at), 0).Seconds()
}
