package metrics

import (
	"math"
	"time"

	"baton/internal/diagnose"
)

// currentFor limits the age of a job's state that is shown unchanged. The node normally reads the
// state again before. If it is older, the servers do not answer, and the lateness grows with time.
const currentFor = time.Minute

// knownJob is the last state of a job that this node has read, leader or not. It stays after the
// term of that reading, since there may be no other node to report it.
type knownJob struct {
	job      diagnose.Job
	at       time.Time // when this node read it
	measured time.Time // when a flush's lag was measured
	lag      time.Duration
	// uncounted: backlog and lag are unknown.
	uncounted bool
}

func (m *Metrics) learn(job string, how func(*knownJob)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.jobs[job] {
		return // the job was removed; its last run may still report
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

// judged returns the job for judging whether it is late, and the time for that. An old state is
// judged at now, without waiting for the run that went on at the reading.
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

// age returns the age in seconds of the older of the two readings: the state, and a flush's lag.
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
