package doctor

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"baton/internal/config"
	"baton/internal/job"
	"baton/internal/job/schedule"
)

const (
	longTTL  = time.Minute
	shortTTL = 3 * time.Second
)

// examineConfig finds settings that are allowed but seldom intended.
func examineConfig(c config.Config, self bool) []Finding {
	r := &report{subject: subjectConfig}
	e := c.Election
	switch {
	case e.TTL > longTTL:
		r.add(SeverityWarning, fmt.Sprintf("election.ttl is %v, which is long", e.TTL),
			"after a power cut, or when its network is gone, the leader is replaced after as long; "+
				"a restart of Redis costs as much again",
			"10s to 30s are usual; a daemon that crashed is replaced at once anyway, by ExecStopPost= of its unit")
	case e.TTL < shortTTL:
		r.add(SeverityInfo, fmt.Sprintf("election.ttl is %v, which is short", e.TTL),
			"a host that stands still for as long, as one does that is being moved, or swaps, loses the lead; "+
				"its jobs are ended each time",
			"10s, unless a takeover must be faster")
	}
	examineListener(c.HTTP, r)
	if !self { // a node passes only the jobs under one lock
		examineStores(c, r)
	}
	examineGrace(c, r)
	return append(r.findings, examineTargets(c)...)
}

// examineGrace finds commands that may take longer to end than a lost lease leaves them.
// By default all do: many are one finding.
func examineGrace(c config.Config, r *report) {
	const consequence, remedy = "when the lease cannot be renewed the command gets less than that: " +
		"whatever its grace, it is killed before the lease can end",
		"raise election.ttl, or have the command end sooner"
	var long []string
	what := ""
	for _, j := range c.Jobs {
		if j.IsCommand() && j.Grace >= c.Election.TTL {
			long = append(long, j.Name)
			r.subject, what = jobSubject(j.Name), fmt.Sprintf("its grace is %v, and election.ttl is %v", j.Grace, c.Election.TTL)
		}
	}
	if n := len(long); n > 1 {
		r.subject, what = subjectConfig, fmt.Sprintf("%d jobs have a grace of election.ttl, %v, or more: %s",
			n, c.Election.TTL, strings.Join(long[:min(n, 5)], ", "))
		if n > 5 {
			what += fmt.Sprintf(" and %d more", n-5)
		}
	}
	if len(long) > 0 {
		r.add(SeverityInfo, what, consequence, remedy)
	}
}

// examineStores finds stores that are written for nothing, or twice.
func examineStores(c config.Config, r *report) {
	all := c.AllStores()
	for i, s := range all[1:] {
		if len(flushesOf(c, s.StoreName)) == 0 {
			r.add(SeverityWarning, fmt.Sprintf("no job reads the store %q", s.StoreName),
				"nothing; it may be that a job's from.store was meant to name it", "name it in a job, or remove "+s.At(""))
		}
		for _, other := range all[:i+1] {
			if other.Place() == s.Place() {
				r.add(SeverityWarning, fmt.Sprintf("%s is the same Redis as %s", s.At(""), other.At("")),
					"where one is away the other is, too; if users and TLS are the same as well they share connections",
					"remove "+s.At("")+", and have its jobs name the other one")
				break
			}
		}
	}
}

// examineListener warns if clients beyond this host can read the node's pages.
func examineListener(h config.HTTP, r *report) {
	host, _, err := net.SplitHostPort(h.Listen)
	if h.Listen == config.Off || err != nil {
		return
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return
	}
	if h.TLS == nil {
		r.add(SeverityWarning, "http.listen is "+h.Listen+", beyond this host, without http.tls",
			"every client that can reach it reads which jobs there are, when they run and what their errors are, "+
				"and so does a listener on the way",
			"listen on 127.0.0.1 behind a proxy that authenticates, or set http.tls; a firewall for /metrics")
		return
	}
	r.add(SeverityInfo, "http.listen is "+h.Listen+", beyond this host",
		"every client that can reach it reads which jobs there are and when they run; orders, output and records take the token",
		"let a firewall pass those that need it")
}

// examineTargets finds jobs that write to the same table.
func examineTargets(c config.Config) []Finding {
	r := &report{}
	writers := map[[2]string][]string{}
	for _, j := range c.Jobs {
		if !j.IsCommand() {
			to := [2]string{j.Flush.To.Database, strings.ToLower(j.Flush.To.Table)}
			writers[to] = append(writers[to], j.Name)
		}
	}
	for _, j := range c.Jobs {
		to := [2]string{j.Flush.To.Database, strings.ToLower(j.Flush.To.Table)}
		if all := writers[to]; len(all) > 1 && all[0] == j.Name {
			r.subject = jobSubject(j.Name)
			r.add(SeverityInfo, fmt.Sprintf("other jobs write to its table %s, too: %s", j.Flush.To.Table, strings.Join(all[1:], ", ")),
				"each change gets there once, and in the order of its own job; "+
					"but which job's comes last is not said, and batches that change the same rows wait for each other",
				"let each write columns of its own, or make them one job")
		}
	}
	return r.findings
}

const (
	// enoughRuns is how many runs show how long the next one takes.
	enoughRuns, lastRuns = 3, 20
)

// examineRuns compares schedules with the durations of past runs in the history.
func examineRuns(ctx context.Context, c config.Config, under func(lockKey string) history) []Finding {
	r := &report{}
	for _, j := range c.Jobs {
		slots, err := schedule.ParseIn(j.Schedule, j.TimeZone)
		if err != nil || schedule.IsAlways(slots) {
			continue
		}
		runs, err := under(j.Lock).Runs(ctx, j.Name, lastRuns)
		if err != nil || len(runs) < enoughRuns {
			continue // the checks of Redis report the problem
		}
		r.subject = jobSubject(j.Name)
		r.tooLong(j, slots, medianOf(runs))
	}
	return r.findings
}

// history is the part of a ledger that returns past runs, the last one first.
type history interface {
	Runs(ctx context.Context, job string, n int) ([]job.Record, error)
}

// tooLong finds a job whose runs take longer than it is between them.
func (r *report) tooLong(j config.Job, slots schedule.Schedule, takes time.Duration) {
	from := time.Now()
	next := slots.Next(from)
	if next.IsZero() {
		return
	}
	period := slots.Next(next).Sub(next)
	together := time.Duration(1) // how many of them may go on
	if j.Overlap == config.OverlapAllow {
		together = max(1, time.Duration(j.MaxOverlap))
	}
	if period <= 0 || takes < together*period {
		return
	}
	what := fmt.Sprintf("half of its last runs took %v or longer, and it is due again after %v", takes.Round(time.Millisecond), period)
	switch {
	case together > 1:
		r.add(SeverityWarning, what, fmt.Sprintf("slots are left out, as %d runs go on: it runs less often than it says", together),
			"a longer schedule, or a higher max_overlap")
	case j.Overlap == config.OverlapForbid:
		r.add(SeverityWarning, what, "slots are left out, as overlap is forbid: it runs less often than it says",
			"a longer schedule, or @always for a flush")
	case j.Overlap == config.OverlapReplace:
		r.add(SeverityError, what, "each run is ended by the next one, as overlap is replace: it may never get to its end",
			"a longer schedule, or overlap: forbid")
	default:
		r.add(SeverityWarning, what, "runs pile up, as overlap is "+j.Overlap, "a longer schedule, or overlap: forbid")
	}
}

func medianOf(runs []job.Record) time.Duration {
	var took []time.Duration
	for _, run := range runs {
		took = append(took, run.Finished.Sub(run.Started))
	}
	slices.Sort(took)
	return took[len(took)/2]
}
