package metrics

import (
	"time"

	"baton/internal/diagnose"
)

// JobNext reports when a job runs next. The zero time means that the job does not run next on this node.
func (m *Metrics) JobNext(job string, at time.Time) {
	m.setOf(m.jobs, job, m.jobNext, unix(at))
}

// JobStarted reports how long after its slot a run started.
func (m *Metrics) JobStarted(job string, delay time.Duration) {
	m.jobDelay.WithLabelValues(job).Observe(max(delay, 0).Seconds())
}

// JobFinished reports the end of a run. The argument result is "succeeded", "failed", "timed_out" or "cancelled".
func (m *Metrics) JobFinished(job, trigger, result string, finished time.Time, took time.Duration) {
	m.jobRuns.add(1, job, trigger, result)
	m.jobTook.WithLabelValues(job).Observe(took.Seconds())
	if result == "succeeded" {
		m.JobSucceeded(job, finished)
	}
}

// JobSucceeded reports the last success in the history, which may have been on another node.
func (m *Metrics) JobSucceeded(job string, at time.Time) {
	m.setOf(m.jobs, job, m.jobLastSuccess, unix(at))
}

// JobStands reports the state of a job, and the time when this node read it.
func (m *Metrics) JobStands(j diagnose.Job, at time.Time) {
	m.setOf(m.jobs, j.Name, m.jobFailures, float64(j.ConsecutiveFailures))
	m.setOf(m.jobs, j.Name, m.jobPaused, truth(j.Paused != nil))
	m.learn(j.Name, func(k *knownJob) { k.job, k.at = j, at })
}

// JobLateAfter reports the configured delay that makes a job late. 0 means that the job is never late.
func (m *Metrics) JobLateAfter(job string, d time.Duration) {
	m.setOf(m.jobs, job, m.jobLateAfter, d.Seconds())
}

// JobMissed counts slots without a run.
func (m *Metrics) JobMissed(job, reason string, slots int) {
	m.jobMissed.add(float64(max(slots, 0)), job, reason)
}

// FlushRows counts records that were written or deleted, or that became dead letters.
func (m *Metrics) FlushRows(job, outcome string, rows int64) {
	m.flushRows.add(float64(max(rows, 0)), job, outcome)
}

// FlushBatch reports the duration of one batch's transaction, including its repetitions.
func (m *Metrics) FlushBatch(job string, took time.Duration) {
	m.flushTook.WithLabelValues(job).Observe(took.Seconds())
}

// TraceSpans counts spans that were delivered to a collector, or that were lost for a reason.
func (m *Metrics) TraceSpans(outcome string, spans int) { m.traced.add(float64(spans), outcome) }

// FlushBehind reports how many changes wait in Redis now, and how far the database is behind Redis.
func (m *Metrics) FlushBehind(job string, changes int64, lag time.Duration) {
	m.setOf(m.flushes, job, m.flushBacklog, float64(changes))
	m.learn(job, func(k *knownJob) { k.measured, k.lag, k.uncounted = time.Now(), lag, false })
}

// FlushAge reports the largest possible age of a table's content. Callers use it for flushes that cannot count changes before a run.
func (m *Metrics) FlushAge(job string, lag time.Duration) {
	m.learn(job, func(k *knownJob) { k.measured, k.lag, k.uncounted = time.Now(), lag, false })
	m.flushBacklog.DeleteLabelValues(job)
}

// FlushUncounted reports that the number of waiting changes in Redis is unknown. It removes the gauges, because zero would mean that no
// change waits.
func (m *Metrics) FlushUncounted(job string) {
	m.learn(job, func(k *knownJob) { k.measured, k.lag, k.uncounted = time.Now(), 0, true })
	m.flushBacklog.DeleteLabelValues(job)
	m.flushLag.DeleteLabelValues(job)
}

// DeadLetters reports how many dead letters of a flush wait in the flush's database.
func (m *Metrics) DeadLetters(job string, waiting int64) {
	m.setOf(m.flushes, job, m.deadLetters, float64(waiting))
}

// Verified reports the result of a flush's last verification, and when it ended.
func (m *Metrics) Verified(job string, at time.Time, found map[string]int64) {
	m.setOf(m.flushes, job, m.verifiedAt, unix(at))
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, result := range verifyResults() {
		if m.flushes[job] {
			m.verifyRows.WithLabelValues(job, result).Set(float64(found[result]))
		}
	}
}

// FlushUnaccepted reports how many rows wait to be accepted as rows of a job.
func (m *Metrics) FlushUnaccepted(job string, rows int64) {
	m.setOf(m.flushes, job, m.unaccepted, float64(rows))
}

// FlushFenced counts a batch that was stopped by the fence of a newer leader.
func (m *Metrics) FlushFenced(job string) { m.flushFenced.add(1, job) }

// Reloaded reports whether the last reload of the configuration succeeded.
func (m *Metrics) Reloaded(ok bool) {
	m.reloaded.Set(truth(ok))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Notified counts notifications for a target. The argument outcome is "delivered", "refused", "given_up" or "dropped".
func (m *Metrics) Notified(target, outcome string, events int) {
	m.notified.add(float64(max(events, 0)), target, outcome)
}

func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
