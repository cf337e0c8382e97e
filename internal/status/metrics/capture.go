package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// captures contains the metrics of captures, which follow the replication streams of stores.
type captures struct {
	joins, breaks, passes, ended *counterVec

	owed, pending, budget         *prometheus.GaugeVec
	lagBytes, lagSeconds, backlog *prometheus.GaugeVec

	mu    sync.Mutex
	known map[string]bool // the jobs with captures
}

// CaptureCodes lists the label values of captures. The counters with these labels are registered with the value zero.
type CaptureCodes struct{ Joins, Breaks, Passes, Ends []string }

// CaptureMaster describes the progress of a capture in the stream of one master.
type CaptureMaster struct {
	Address                         string
	Bytes, Seconds, BacklogUsedPart float64
}

func (m *Metrics) registerCaptures() {
	m.captures = captures{
		joins: m.counters("capture_joins_total", "Replication streams that this node has joined, by the place: where the last "+
			"connection ended, "+
			"of a promoted master, at the end of the stream, or after a copy of all data.", "job", "how"),
		breaks: m.counters("capture_interruptions_total", "Number of times that a replication stream could not be joined, or "+
			"ended, by reason.",
			"job", "reason"),
		passes: m.counters("capture_passes_total", "Passes over all keys that this node has begun, by reason.", "job", "reason"),
		ended: m.counters("capture_passes_ended_total", "Passes over all keys that have ended: complete, or to be repeated because "+
			"they may have missed keys.", "job", "result"),
		owed: m.gauges("capture_pass_owed", "1 while a pass over all keys is due or in progress, on the node that follows, else 0.",
			"job"),
		pending: m.gauges("capture_pending_bytes", "Memory of the changed keys that wait to be flushed, on the node that follows.", "job"),
		budget:  m.gauges("capture_pending_budget_bytes", "Limit of capture_pending_bytes; above it the job reads all keys.", "job"),
		lagBytes: m.gauges("capture_lag_bytes", "Bytes of a master's stream that the node that follows has not received.", "job",
			"master"),
		lagSeconds: m.gauges("capture_lag_seconds", "How long the node that follows has not received the end of a master's stream.",
			"job", "master"),
		backlog: m.gauges("capture_backlog_used_ratio", "Part of a master's replication backlog that is newer than the position in the "+
			"database, on the node that follows; above 1 the job must read all keys.", "job", "master"),
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

// AddCaptures registers the metrics of captures with the value zero.
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

// CaptureJoined counts a stream that the capture has joined.
func (m *Metrics) CaptureJoined(job, how string) { m.captures.joins.add(1, job, how) }

// CaptureInterrupted counts a stream that the capture could not join, or that has ended.
func (m *Metrics) CaptureInterrupted(job, reason string) { m.captures.breaks.add(1, job, reason) }

// CapturePass counts the beginning of a pass over all keys.
func (m *Metrics) CapturePass(job, reason string) { m.captures.passes.add(1, job, reason) }

// CapturePassed counts the end of a pass over all keys.
func (m *Metrics) CapturePassed(job, result string) { m.captures.ended.add(1, job, result) }

// CaptureProgress reports the state of a capture on this node. If the node no longer follows the capture, the caller reports zeros and no
// masters.
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
