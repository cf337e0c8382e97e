package metrics

import (
	"math"
	"time"

	"baton/internal/diagnose"
)

// currentFor is how long what a node has learned of a job is shown as it was: it is learned anew
// before. Later no server answers, and what was late only gets later.
const currentFor = time.Minute

// knownJob is what a node knows of a job, leader or not: it outlives the term in which it
// was learned, since no other node may be there to report it.
type knownJob struct {
	job      diagnose.Job
	at       time.Time // when this node learned it
	measured time.Time // of a flush
	lag      time.Duration
	// uncounted: neither the backlog nor the lag is known.
	uncounted bool
}

func (m *Metrics) learn(job string, how func(*knownJob)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.jobs[job] {
		return // it is no more; its last run may go on
	}
	k, ok := m.known[job]
	if !ok {
		k = &knownJob{}
		m.known[job] = k
	}
	how(k)
}

// refresh brings up to date what changes as time passes.
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

// judged is the job as it is to be judged, and as of when. What is old is judged as of now, and a
// run that went on then is not waited for any more.
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

// age is how old the oldest of it is, in seconds.
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
