package status

import "time"

// JobNext tells when a job runs next; the zero time: not on this node.
func (m *Metrics) JobNext(job string, at time.Time) {
	m.setOf(m.jobs, job, m.jobNext, unix(at))
}

// JobStarted tells how long after its slot a run started.
func (m *Metrics) JobStarted(job string, delay time.Duration) {
	m.jobDelay.WithLabelValues(job).Observe(max(delay, 0).Seconds())
}

// JobFinished tells how a run ended: succeeded, failed, timed_out or cancelled.
func (m *Metrics) JobFinished(job, trigger, result string, finished time.Time, took time.Duration) {
	m.jobRuns.WithLabelValues(job, trigger, result).Inc()
	m.jobTook.WithLabelValues(job).Observe(took.Seconds())
	if result == "succeeded" {
		m.JobSucceeded(job, finished)
	}
}

// JobSucceeded tells of the last success from the history, which other nodes wrote too.
func (m *Metrics) JobSucceeded(job string, at time.Time) {
	m.setOf(m.jobs, job, m.jobLastSuccess, unix(at))
}

// Standing is how a job stands, as the leader knows it.
type Standing struct {
	Failures int64         // since the last success
	Paused   bool          // itself, or with all others
	Overdue  time.Duration // since a run was due, if none has succeeded since
}

// JobStands tells how a job stands.
func (m *Metrics) JobStands(job string, s Standing) {
	m.setOf(m.jobs, job, m.jobFailures, float64(s.Failures))
	m.setOf(m.jobs, job, m.jobPaused, truth(s.Paused))
	m.setOf(m.jobs, job, m.jobOverdue, max(s.Overdue, 0).Seconds())
}

// JobLateAfter tells from when on a job is late, as it is configured; 0: it is not.
func (m *Metrics) JobLateAfter(job string, d time.Duration) {
	m.setOf(m.jobs, job, m.jobLateAfter, d.Seconds())
}

// JobMissed counts slots that were not run.
func (m *Metrics) JobMissed(job, reason string, slots int) {
	m.jobMissed.WithLabelValues(job, reason).Add(float64(max(slots, 0)))
}

// FlushRows counts records: written, or dead.
func (m *Metrics) FlushRows(job, outcome string, rows int64) {
	m.flushRows.WithLabelValues(job, outcome).Add(float64(max(rows, 0)))
}

// FlushBatch tells how long the transaction of one batch took, repetitions included.
func (m *Metrics) FlushBatch(job string, took time.Duration) {
	m.flushTook.WithLabelValues(job).Observe(took.Seconds())
}

// FlushLag tells how far the database is behind Redis.
func (m *Metrics) FlushLag(job string, lag time.Duration) {
	m.setOf(m.flushes, job, m.flushLag, max(lag, 0).Seconds())
}

// FlushBacklog tells how many changes wait in Redis.
func (m *Metrics) FlushBacklog(job string, changes int64) {
	m.setOf(m.flushes, job, m.flushBacklog, float64(changes))
}

// FlushFenced counts a batch that a newer leader's fence stopped.
func (m *Metrics) FlushFenced(job string) { m.flushFenced.WithLabelValues(job).Inc() }

// Reloaded tells whether the configuration could be read anew.
func (m *Metrics) Reloaded(ok bool) {
	m.reloaded.Set(truth(ok))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Notified counts notifications for a target: delivered, refused, given_up or dropped.
func (m *Metrics) Notified(target, outcome string, events int) {
	m.notified.WithLabelValues(target, outcome).Add(float64(max(events, 0)))
}

func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
