package status

import (
	"sync"
	"time"
)

// Won tells that this node leads, under epoch.
func (m *Metrics) Won(epoch int64) {
	m.leader.Set(1)
	m.epoch.Set(float64(epoch))
	m.transitions.WithLabelValues("won").Inc()
}

// Ended tells that this node's term ended: lost, expired, stepped_down or released.
// What only the leader knows goes back to zero.
func (m *Metrics) Ended(reason string) {
	m.leader.Set(0)
	m.lease.watch(nil)
	m.transitions.WithLabelValues(reason).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	for job := range m.jobs {
		m.jobNext.WithLabelValues(job).Set(0)
		m.flushLag.WithLabelValues(job).Set(0)
		m.flushBacklog.WithLabelValues(job).Set(0)
	}
}

// Transition counts a change that neither begins nor ends a term, such as quarantined.
func (m *Metrics) Transition(reason string) { m.transitions.WithLabelValues(reason).Inc() }

// Epoch tells the epoch that this node knows, after it was raised or as a standby.
func (m *Metrics) Epoch(epoch int64) { m.epoch.Set(float64(epoch)) }

// Lease tells how to ask for the time left to the hard stop, from the beginning of
// a term; left must not block. Ended forgets it.
func (m *Metrics) Lease(left func() time.Duration) { m.lease.watch(left) }

// Renewal tells of one attempt to renew: renewed, lost, refused or unknown. Called
// before the lease is extended, it also sees how close it was.
func (m *Metrics) Renewal(outcome string, took time.Duration) {
	m.lease.sample()
	m.renewTook.Observe(took.Seconds())
	m.renewals.WithLabelValues(outcome).Inc()
}

// JobNext tells when a job runs next; the zero time: not on this node.
func (m *Metrics) JobNext(job string, at time.Time) {
	m.jobNext.WithLabelValues(job).Set(unix(at))
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
	m.jobLastSuccess.WithLabelValues(job).Set(unix(at))
}

// JobMissed counts slots that were not run: overlap, no_leader, late, ledger or paused.
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
	m.flushLag.WithLabelValues(job).Set(max(lag, 0).Seconds())
}

// FlushBacklog tells how many changes wait in Redis.
func (m *Metrics) FlushBacklog(job string, changes int64) {
	m.flushBacklog.WithLabelValues(job).Set(float64(changes))
}

// FlushFenced counts a batch that a newer leader's fence stopped.
func (m *Metrics) FlushFenced(job string) { m.flushFenced.WithLabelValues(job).Inc() }

func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// lowWindow is the length of the two windows over which a lease's low water is kept.
const lowWindow = 5 * time.Minute

// lease remembers how close a term came to its end. A minimum since the beginning
// of the term would show one old hiccup for ever; a minimum between two scrapes
// would be taken away from one scraper by another. So there are two windows, and
// the older one is dropped when the newer one is full.
type lease struct {
	mu       sync.Mutex
	left     func() time.Duration // nil: this node does not lead
	turned   time.Time
	now, old time.Duration // the minima of the windows
}

// watch begins a term, or with nil ends one.
func (l *lease) watch(left func() time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.turned = left, time.Now()
	if left != nil {
		l.now = max(left(), 0)
		l.old = l.now
	}
}

func (l *lease) remaining() float64 {
	left, _ := l.sample()
	return left.Seconds()
}

func (l *lease) low() float64 {
	_, low := l.sample()
	return low.Seconds()
}

// sample returns what is left and the lowest of it.
func (l *lease) sample() (left, low time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == nil {
		return 0, 0
	}
	left = max(l.left(), 0)
	if time.Since(l.turned) >= lowWindow {
		l.old, l.now, l.turned = l.now, left, time.Now()
	}
	l.now = min(l.now, left)
	return left, min(l.now, l.old)
}
