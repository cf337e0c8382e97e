package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Election contains the metrics of one election that the node takes part in.
type Election struct {
	metrics *Metrics
	lock    string
	lease   lease
	gauges  []prometheus.Collector // computed at each scrape
}

// Election returns the metrics of a lock's election. The first call registers the metrics.
func (m *Metrics) Election(lock string) *Election {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.elections[lock]; ok {
		return e
	}
	e := &Election{metrics: m, lock: lock}
	m.elections[lock] = e
	m.leader.WithLabelValues(lock)
	m.epoch.WithLabelValues(lock)
	m.renewTook.WithLabelValues(lock)
	for _, reason := range transitionReasons() {
		m.transitions.add(0, lock, reason)
	}
	for _, outcome := range renewOutcomes() {
		m.renewals.add(0, lock, outcome)
	}
	for _, state := range nodeStates() {
		m.nodes.WithLabelValues(lock, state)
	}
	m.drifted.WithLabelValues(lock)
	m.paused.WithLabelValues(lock)
	m.clockOffset.WithLabelValues(lock)
	m.redisUp.WithLabelValues(lock).Set(1) // the value until Redis fails
	e.gauges = []prometheus.Collector{
		e.ask("lease_remaining_seconds", "Time until this node must stop leading if no renewal succeeds; 0 "+
			"on a standby.", e.lease.remaining),
		e.ask("lease_remaining_low_seconds", "Lowest lease_remaining_seconds of the last 5 to 10 minutes of this "+
			"term; 0 on a standby.", e.lease.low),
	}
	m.registry.MustRegister(e.gauges...)
	return e
}

func (e *Election) ask(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "baton", Name: name, Help: help, ConstLabels: prometheus.Labels{"lock": e.lock},
	}, value)
}

// Forget removes the metrics of an election that the node has left.
func (e *Election) Forget() {
	m := e.metrics
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.elections, e.lock)
	of := prometheus.Labels{"lock": e.lock}
	for _, vec := range []*prometheus.GaugeVec{m.leader, m.epoch, m.redisUp, m.nodes, m.drifted, m.paused, m.clockOffset} {
		vec.DeletePartialMatch(of)
	}
	m.renewTook.DeletePartialMatch(of)
	m.transitions.forget(e.lock)
	m.renewals.forget(e.lock)
	for _, g := range e.gauges {
		m.registry.Unregister(g)
	}
}

// Won reports that this node leads, with the given epoch.
func (e *Election) Won(epoch int64) {
	e.metrics.leader.WithLabelValues(e.lock).Set(1)
	e.Epoch(epoch)
	e.Transition("won")
}

// Ended reports that this node's term has ended. The argument reason is "lost", "expired", "stepped_down" or "released". The metrics
// keep the state of the node's jobs, because there may be no other node to report it. Only the time of their next run is cleared,
// because that run happens on another node.
func (e *Election) Ended(reason string, jobs ...string) {
	e.metrics.leader.WithLabelValues(e.lock).Set(0)
	e.lease.watch(nil)
	e.Transition(reason)
	for _, job := range jobs {
		e.metrics.JobNext(job, time.Time{})
	}
}

// Transition counts a change of the election, such as "won" or "quarantined". Won and Ended call it, so callers use it only for
// changes that neither begin nor end a term.
func (e *Election) Transition(reason string) {
	e.metrics.transitions.add(1, e.lock, reason)
}

// Epoch reports a new epoch, which this node has raised itself or has read as a standby.
func (e *Election) Epoch(epoch int64) {
	e.metrics.epoch.WithLabelValues(e.lock).Set(float64(epoch))
}

// Lease sets the function that returns the time until the hard stop. The caller must call Lease at the beginning of a term. The
// function left must not block. Ended removes the function.
func (e *Election) Lease(left func() time.Duration) { e.lease.watch(left) }

// Renewal reports one attempt to renew the lease. The argument outcome is "renewed", "lost", "refused" or "unknown". Renewal must be
// called before the lease is extended, so that it also records the time that was left.
func (e *Election) Renewal(outcome string, took time.Duration) {
	e.lease.sample()
	e.metrics.renewTook.WithLabelValues(e.lock).Observe(took.Seconds())
	e.metrics.renewals.add(1, e.lock, outcome)
}

// lowWindow is the length of a window in which lease records its minimum. There are two such windows.
const lowWindow = 5 * time.Minute

// lease records how close a term came to the end of its lease. A minimum since the beginning of the term would show one old delay for ever.
// A minimum since the last scrape would be reset by any other scraper. So there are two windows, and the older window is dropped when the
// newer window is full.
type lease struct {
	mu       sync.Mutex
	left     func() time.Duration // nil if this node does not lead
	turned   time.Time
	now, old time.Duration // the minima of the windows
}

// watch begins a term. If the function left is nil, watch ends the term.
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

// sample returns the time that is left now, and its minimum over both windows.
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
