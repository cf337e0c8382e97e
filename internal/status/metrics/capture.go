package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// captures has the metrics of captures, which follow the replication streams of stores.
type captures struct {
	joins, breaks, passes, ended *counterVec

	owed, pending, budget         *prometheus.GaugeVec
	lagBytes, lagSeconds, backlog *prometheus.GaugeVec

	mu    sync.Mutex
	known map[string]bool // the jobs
}

// CaptureCodes are the label values that are registered at zero.
type CaptureCodes struct{ Joins, Breaks, Passes, Ends []string }

// CaptureMaster is the progress in the stream of one master.
type CaptureMaster struct {
	Address                         string
	Bytes, Seconds, BacklogUsedPart float64
}

func (m *Metrics) registerCaptures() {
	m.captures = captures{
		joins: m.counters("capture_joins_total", "Replication streams that this node has joined, by how: where it was left, of "+
			"a promoted master, at its end, behind all data.", "job", "how"),
		breaks: m.counters("capture_interruptions_total", "Times that a replication stream could not be joined, or ended, by reason.",
			"job", "reason"),
		passes: m.counters("capture_passes_total", "Passes over all keys that this node has begun, by reason.", "job", "reason"),
		ended: m.counters("capture_passes_ended_total", "Passes over all keys that have ended: complete, or to be made again since "+
			"they may have missed some.", "job", "result"),
		owed: m.gauges("capture_pass_owed", "1 while a pass over all keys is owed or under way, on the node that follows, else 0.",
			"job"),
		pending: m.gauges("capture_pending_bytes", "Memory of the changed keys that wait, on the node that follows.", "job"),
		budget:  m.gauges("capture_pending_budget_bytes", "What that may be: beyond it all keys are read.", "job"),
		lagBytes: m.gauges("capture_lag_bytes", "How much of a master's stream was not heard of, on the node that follows.", "job",
			"master"),
		lagSeconds: m.gauges("capture_lag_seconds", "For how long that has been so.", "job", "master"),
		backlog: m.gauges("capture_backlog_used_ratio", "Part of a master's replication backlog that is behind the place in the "+
			"database, on the node that follows: beyond 1 all keys must be read.", "job", "master"),
		known: map[string]bool{},
	}
}

// gauges returns the gauges that have only the label job.
func (c *captures) gauges() []*prometheus.GaugeVec {
	return []*prometheus.GaugeVec{c.owed, c.pending, c.budget}
}

func (c *captures) perMaster() []*prometheus.GaugeVec {
	return []*prometheus.GaugeVec{c.lagBytes, c.lagSeconds, c.backlog}
}

// AddCaptures registers the metrics of captures at zero.
func (m *Metrics) AddCaptures(codes CaptureCodes, names ...string) {
	c := &m.captures
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, job := range names {
		c.known[job] = true
		for vec, values := range map[*counterVec][]string{
			c.joins: codes.Joins, c.breaks: codes.Breaks, c.passes: codes.Passes, c.ended: codes.Ends,
		} {
			for _, value := range values {
				vec.add(0, job, value)
			}
		}
		for _, vec := range c.gauges() {
			vec.WithLabelValues(job)
		}
	}
}

// forget removes the gauges of a removed job.
func (c *captures) forget(job string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, job)
	for _, vec := range append(c.gauges(), c.perMaster()...) {
		vec.DeletePartialMatch(prometheus.Labels{"job": job})
	}
}

// CaptureJoined counts a stream that was joined.
func (m *Metrics) CaptureJoined(job, how string) { m.captures.joins.add(1, job, how) }

// CaptureInterrupted counts a stream that could not be joined, or ended.
func (m *Metrics) CaptureInterrupted(job, reason string) { m.captures.breaks.add(1, job, reason) }

// CapturePass counts a pass over all keys that begins.
func (m *Metrics) CapturePass(job, reason string) { m.captures.passes.add(1, job, reason) }

// CapturePassed counts a pass that has ended.
func (m *Metrics) CapturePassed(job, result string) { m.captures.ended.add(1, job, result) }

// CaptureProgress reports the state of a capture on this node. For a capture that the node has stopped following,
// it reports zeros and no masters.
func (m *Metrics) CaptureProgress(job string, passOwed bool, pending, budget int, masters []CaptureMaster) {
	c := &m.captures
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known[job] {
		return // the job was removed; its last run may still report
	}
	c.owed.WithLabelValues(job).Set(truth(passOwed))
	c.pending.WithLabelValues(job).Set(float64(pending))
	c.budget.WithLabelValues(job).Set(float64(budget))
	for _, vec := range c.perMaster() {
		vec.DeletePartialMatch(prometheus.Labels{"job": job})
	}
	for _, one := range masters {
		c.lagBytes.WithLabelValues(job, one.Address).Set(one.Bytes)
		c.lagSeconds.WithLabelValues(job, one.Address).Set(one.Seconds)
		c.backlog.WithLabelValues(job, one.Address).Set(one.BacklogUsedPart)
	}
}
