package metrics

import (
	"math"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// Metrics contains the node's metrics, in their own registry. Every series that the configuration can produce exists from the start with
// the value zero, so that rates and alerts see the first event. docs/reference/metrics.md lists the metrics.
//
// [Metrics.Election] returns the metrics of one election. The methods accept plain values, never block, and are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	scraped  atomic.Int64 // time of the last scrape, in Unix nanoseconds

	leader      *prometheus.GaugeVec
	epoch       *prometheus.GaugeVec
	transitions *counterVec
	renewTook   *prometheus.HistogramVec
	renewals    *counterVec
	reloaded    prometheus.Gauge

	redisUp     *prometheus.GaugeVec
	storeUp     *prometheus.GaugeVec
	nodes       *prometheus.GaugeVec
	drifted     *prometheus.GaugeVec
	paused      *prometheus.GaugeVec
	clockOffset *prometheus.GaugeVec

	jobRuns        *counterVec
	jobMissed      *counterVec
	jobTook        *prometheus.HistogramVec
	jobDelay       *prometheus.HistogramVec
	jobNext        *prometheus.GaugeVec
	jobLastSuccess *prometheus.GaugeVec
	jobFailures    *prometheus.GaugeVec
	jobPaused      *prometheus.GaugeVec
	jobOverdue     *prometheus.GaugeVec
	jobLate        *prometheus.GaugeVec
	jobLateAfter   *prometheus.GaugeVec
	jobUnscheduled *prometheus.GaugeVec
	jobAge         *prometheus.GaugeVec

	flushRows    *counterVec
	flushTook    *prometheus.HistogramVec
	flushLag     *prometheus.GaugeVec
	flushBacklog *prometheus.GaugeVec
	flushFenced  *counterVec
	deadLetters  *prometheus.GaugeVec
	verifyRows   *prometheus.GaugeVec
	verifiedAt   *prometheus.GaugeVec
	unaccepted   *prometheus.GaugeVec

	notified *counterVec
	traced   *counterVec
	captures captures

	mu        sync.Mutex
	jobs      map[string]bool
	flushes   map[string]bool // the jobs that are flushes
	known     map[string]*knownJob
	elections map[string]*Election
}

// transitionReasons returns the label values that are registered with the value zero. Any other value appears when it is first reported.
func transitionReasons() []string {
	return []string{"won", "lost", "expired", "stepped_down", "released", "quarantined"}
}
func renewOutcomes() []string { return []string{"renewed", "lost", "refused", "unknown"} }
func jobTriggers() []string   { return []string{"schedule", "catch_up", "retry", "manual"} }
func jobResults() []string    { return []string{"succeeded", "failed", "timed_out", "cancelled", "lost"} }
func missedReasons() []string {
	return []string{"overlap", "no_leader", "late", "ledger", "paused", "concurrency", "unknown"}
}
func verifyResults() []string {
	return []string{"compared", "missing", "different", "extra", "unfit"}
}
func flushOutcomes() []string { return []string{"written", "deleted", "dead"} }
func nodeStates() []string    { return []string{"live", "silent"} }
func traceOutcomes() []string { return []string{"delivered", "refused", "given_up", "dropped"} }
func notifyOutcomes() []string {
	return []string{"delivered", "refused", "given_up", "dropped"}
}

// quickBuckets returns the bounds of histogram buckets in seconds, from the latency of a healthy network to a latency that ends a
// term.
func quickBuckets() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
}

// runBuckets returns the bounds of histogram buckets in seconds, from the duration of an empty flush to the duration of a nightly
// report.
func runBuckets() []float64 {
	return []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 14400}
}

// coarseFrom is a number of jobs. With as many jobs or more, histograms have only few buckets. Each bucket of each job is a series
// on every node, and each series needs memory in the metrics server.
const coarseFrom = 500

// few returns only every fifth of the bounds if there are at least coarseFrom jobs.
func few(bounds []float64, jobs int) []float64 {
	if jobs < coarseFrom {
		return bounds
	}
	var kept []float64
	for i := 4; i < len(bounds); i += 5 {
		kept = append(kept, bounds[i])
	}
	return kept
}

// New returns the metrics of a node with the given version and jobs. The caller then names the flushes among the jobs with AddFlushes.
func New(version string, jobs []string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), jobs: map[string]bool{}, flushes: map[string]bool{},
		known: map[string]*knownJob{}, elections: map[string]*Election{}}
	m.registerElection(version)
	m.registerSurroundings()
	m.registerJobs(len(jobs))
	m.registerFlush(len(jobs))
	m.registerCaptures()
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.AddJobs(jobs...)
	return m
}

func (m *Metrics) registerElection(version string) {
	m.leader = m.gauges("leader", "1 while this node leads, else 0.", "lock")
	m.epoch = m.gauges("epoch", "Epoch (fencing token) of the term that this node knows; 0: it knows no term.", "lock")
	m.transitions = m.counters("leader_transitions_total", "Changes of leadership on this node, by reason.", "lock", "reason")
	m.renewTook = m.histograms("renew_seconds", "Time that renewals of the lease took.", quickBuckets(), "lock")
	m.renewals = m.counters("renew_outcomes_total", "Renewals of the lease, by outcome.", "lock", "outcome")
	m.reloaded = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "baton", Name: "config_last_reload_successful",
		Help: "1 if the last reading of the configuration succeeded, else 0: an older configuration is in force."})
	m.registry.MustRegister(m.reloaded)
	m.reloaded.Set(1)
	m.gauges("build_info", "Always 1; the labels name the versions of baton and Go.", "version", "goversion").
		WithLabelValues(version, runtime.Version()).Set(1)
}

// registerSurroundings registers the metrics of a node's view of elections and stores. Leaders and standbys report them.
func (m *Metrics) registerSurroundings() {
	m.redisUp = m.gauges("redis_up", "1 while Redis serves the election of the lock, else 0.", "lock")
	m.storeUp = m.gauges("store_up", "1 while the store answers this node, else 0: only the jobs of this store fail.", "store")
	m.nodes = m.gauges("nodes", "Nodes of the election, by state: live, or silent (not seen lately, and not shut down).", "lock", "state")
	m.drifted = m.gauges("nodes_drifted", "Live nodes whose configuration differs from the leader's configuration.", "lock")
	m.paused = m.gauges("election_paused", "1 while an operator has paused the election, else 0.", "lock")
	m.clockOffset = m.gauges("clock_offset_seconds", "How far the clock of Redis is ahead of this node's clock, give or take "+
		"half a round trip.", "lock")
}

func (m *Metrics) registerJobs(jobs int) {
	m.jobRuns = m.counters("job_runs_total", "Finished runs, by trigger and result.", "job", "trigger", "result")
	m.jobMissed = m.counters("job_missed_total", "Slots that were not run, by reason.", "job", "reason")
	m.jobTook = m.histograms("job_duration_seconds", "Time that runs took.", few(runBuckets(), jobs), "job")
	m.jobDelay = m.histograms("job_start_delay_seconds", "Time from a slot to the start of its run.", few(quickBuckets(), jobs), "job")
	m.jobNext = m.gauges("job_next_run_timestamp_seconds", "When the job runs next, as Unix time; 0: not on this node.", "job")
	m.jobLastSuccess = m.gauges("job_last_success_timestamp_seconds",
		"When the job last succeeded, as Unix time; 0: not known to this node.", "job")
	m.jobFailures = m.gauges("job_consecutive_failures", "Runs that failed since the last success.", "job")
	m.jobPaused = m.gauges("job_paused", "1 while the job is paused, else 0.", "job")
	m.jobOverdue = m.gauges("job_overdue_seconds", "Time since a run was due, if no run has succeeded since then; else 0.", "job")
	m.jobLate = m.gauges("job_late", "1 while the job is late: overdue for longer than its late_after, "+
		"or a flush without late_after for longer than a minute.", "job")
	m.jobUnscheduled = m.gauges("job_unscheduled", "1 while another node leads whose configuration does not contain the job, "+
		"else 0.", "job")
	m.jobAge = m.gauges("job_known_age_seconds", "Age of this node's knowledge of the job: failures, pause, "+
		"overdue time, lag and backlog; +Inf: it knows nothing yet.", "job")
	m.jobLateAfter = m.gauges("job_late_after_seconds", "The job's late_after: a job that is overdue for longer is late; 0: "+
		"not set.", "job")
}

func (m *Metrics) registerFlush(jobs int) {
	m.flushRows = m.counters("flush_rows_total", "Records, by outcome: written to the table, deletions "+
		"included; rows deleted from the table; or stored as dead letters.", "job", "outcome")
	m.flushTook = m.histograms("flush_batch_seconds", "Time that transactions of a flush took, including repetitions.",
		few(quickBuckets(), jobs), "job")
	m.flushLag = m.gauges("flush_lag_seconds", "How far the database is behind Redis.", "job")
	m.flushBacklog = m.gauges("flush_backlog", "Changes that wait in Redis.", "job")
	m.flushFenced = m.counters("flush_fenced_total", "Batches that the fence of a newer leader stopped.", "job")
	m.deadLetters = m.gauges("dead_letters", "Records that wait in the database as dead letters, as the leader last counted them.", "job")
	m.verifyRows = m.gauges("verify_rows", "Result of the last verification of a job: compared records, and differences "+
		"of each kind.", "job", "result")
	m.unaccepted = m.gauges("flush_unaccepted_rows", "Rows that the job never wrote, and that it does not change until an "+
		"operator accepts "+
		"them, on the leader.", "job")
	m.verifiedAt = m.gauges("verify_timestamp_seconds", "When the last verification of a job ended, as Unix time; 0: none "+
		"has ended.", "job")
	m.notified = m.counters("notifications_total", "Notifications and signs of life, by outcome.", "target", "outcome")
	m.traced = m.counters("trace_spans_total", "Spans of traces, by outcome.", "outcome")
	for _, outcome := range traceOutcomes() {
		m.traced.add(0, outcome)
	}
}

// AddJobs registers the metrics of new jobs with the value zero.
func (m *Metrics) AddJobs(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, job := range names {
		if m.jobs[job] {
			continue
		}
		m.jobs[job] = true
		for _, trigger := range jobTriggers() {
			for _, result := range jobResults() {
				m.jobRuns.add(0, job, trigger, result)
			}
		}
		for _, reason := range missedReasons() {
			m.jobMissed.add(0, job, reason)
		}
		m.jobTook.WithLabelValues(job)
		m.jobDelay.WithLabelValues(job)
		for _, vec := range m.ofJobs() {
			vec.WithLabelValues(job)
		}
		m.jobAge.WithLabelValues(job).Set(math.Inf(1))
	}
}

// AddFlushes registers the metrics that only flushes have, with the value zero. The named jobs are flushes.
func (m *Metrics) AddFlushes(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, job := range names {
		m.flushes[job] = true
		m.unaccepted.WithLabelValues(job)
		for _, outcome := range flushOutcomes() {
			m.flushRows.add(0, job, outcome)
		}
		m.flushTook.WithLabelValues(job)
		m.flushLag.WithLabelValues(job)
		m.flushBacklog.WithLabelValues(job)
		m.flushFenced.add(0, job)
		m.deadLetters.WithLabelValues(job)
	}
}

// AddComparable registers the metrics of verifications. The named jobs are flushes that can be verified.
func (m *Metrics) AddComparable(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, job := range names {
		m.verifiedAt.WithLabelValues(job)
		for _, result := range verifyResults() {
			m.verifyRows.WithLabelValues(job, result)
		}
	}
}

// ForgetJobs removes the gauges of removed jobs. The counters of these jobs stay.
func (m *Metrics) ForgetJobs(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, job := range names {
		delete(m.jobs, job)
		delete(m.flushes, job)
		delete(m.known, job)
		for _, vec := range m.present() {
			vec.DeleteLabelValues(job)
		}
		m.verifyRows.DeletePartialMatch(prometheus.Labels{"job": job})
		m.captures.forget(job)
	}
}

// present returns all gauges of a job, including the gauges of flushes.
func (m *Metrics) present() []*prometheus.GaugeVec {
	return append(m.ofJobs(), m.flushLag, m.flushBacklog, m.deadLetters, m.verifiedAt, m.unaccepted)
}

func (m *Metrics) ofJobs() []*prometheus.GaugeVec {
	return []*prometheus.GaugeVec{m.jobNext, m.jobLastSuccess, m.jobFailures, m.jobPaused, m.jobOverdue, m.jobLate,
		m.jobLateAfter, m.jobUnscheduled, m.jobAge}
}

// setOf sets a gauge of a known job. It ignores a removed job, because the last run of such a job may still report.
func (m *Metrics) setOf(known map[string]bool, job string, vec *prometheus.GaugeVec, value float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known[job] {
		vec.WithLabelValues(job).Set(value)
	}
}

// StoreUp reports whether a store answers.
func (m *Metrics) StoreUp(store string, up bool) { m.storeUp.WithLabelValues(store).Set(truth(up)) }

// ForgetStores removes the gauges of removed stores.
func (m *Metrics) ForgetStores(names ...string) {
	for _, store := range names {
		m.storeUp.DeleteLabelValues(store)
	}
}

// AddTargets registers the metrics of notification targets with the value zero.
func (m *Metrics) AddTargets(names ...string) {
	for _, target := range names {
		for _, outcome := range notifyOutcomes() {
			m.notified.add(0, target, outcome)
		}
	}
}

func (m *Metrics) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "baton", Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) counters(name, help string, labels ...string) *counterVec {
	v := newCounterVec("baton_"+name, help, labels...)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "baton", Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(v)
	return v
}

// scrapeTimeout limits the time of a scrape. It is the default timeout of Prometheus.
const scrapeTimeout = 10 * time.Second

// Handler serves the metrics. If one collector fails, the metrics of the other collectors are still served.
func (m *Metrics) Handler(log *zap.Logger) http.Handler {
	serve := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: &scrapeLog{to: log}, ErrorHandling: promhttp.ContinueOnError, Registry: nil,
		EnableOpenMetrics: true, Timeout: scrapeTimeout,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		m.scraped.Store(now.UnixNano())
		m.refresh(now)
		serve.ServeHTTP(w, r)
	})
}

// Scraped returns the time of the last scrape, or the Unix epoch if there was none.
func (m *Metrics) Scraped() time.Time { return time.Unix(0, m.scraped.Load()) }
