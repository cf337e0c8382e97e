package doctor

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"baton/internal/config"
	"baton/internal/finding"
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
		r.add(finding.LongTTL, fmt.Sprintf("election.ttl is %v, which is long", e.TTL),
			"if the leader loses its power or its network, no node leads for this time; "+
				"a restart of Redis costs the same time again",
			"10s to 30s are usual; a daemon that crashed is replaced at once anyway, by ExecStopPost= of its unit")
	case e.TTL < shortTTL:
		r.add(finding.ShortTTL, fmt.Sprintf("election.ttl is %v, which is short", e.TTL),
			"a host that stops for this time, for example because it is migrated or swaps, loses the lead; "+
				"each time its jobs are ended",
			"10s, unless a takeover must be faster")
	}
	examineListener(c.HTTP, r)
	if !self { // a node that checks itself passes only the jobs under one lock, so a store may seem unused
		examineStores(c, r)
	}
	examineGrace(c, r)
	return append(r.findings, examineTargets(c)...)
}

// examineGrace finds commands that may need more time to end than a lost lease allows. With the default settings this concerns all
// commands. Therefore several such commands lead to only one finding.
func examineGrace(c config.Config, r *report) {
	const consequence, remedy = "if the lease cannot be renewed, the command gets less time than its grace, " +
		"because baton kills it before the lease can end",
		"raise election.ttl, or make the command end sooner"
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
		r.add(finding.ShortGrace, what, consequence, remedy)
	}
}

// examineStores finds stores that no job uses, and stores that are configured twice.
func examineStores(c config.Config, r *report) {
	all := c.AllStores()
	for i, s := range all[1:] {
		if len(flushesOf(c, s.StoreName)) == 0 {
			r.add(finding.UnreadStore, fmt.Sprintf("no job reads the store %q", s.StoreName),
				"nothing; it may be that a job's from.store was meant to name it", "name it in a job, or remove "+s.At(""))
		}
		for _, other := range all[:i+1] {
			if other.Place() == s.Place() {
				r.add(finding.SameRedis, fmt.Sprintf("%s is the same Redis as %s", s.At(""), other.At("")),
					"if one is unavailable, so is the other; if users and TLS are also the same, both share connections",
					"remove "+s.At("")+", and name the other one in its jobs")
				break
			}
		}
	}
}

// examineListener warns if clients on other hosts can read the node's pages.
func examineListener(h config.HTTP, r *report) {
	host, _, err := net.SplitHostPort(h.Listen)
	if h.Listen == config.Off || err != nil {
		return
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return
	}
	if h.TLS == nil {
		r.add(finding.OpenListener, "http.listen is "+h.Listen+", reachable from other hosts, without http.tls",
			"every client that can reach it can read the names, times and errors of the jobs, "+
				"and so can anyone who listens on the network",
			"listen on 127.0.0.1 behind a proxy that authenticates, or set http.tls; protect /metrics by a firewall")
		return
	}
	r.add(finding.OpenListener.As(SeverityInfo), "http.listen is "+h.Listen+", reachable from other hosts",
		"every client that can reach it can read the names and times of the jobs; orders, output and records need the token",
		"let a firewall accept only the clients that need it")
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
			r.add(finding.SharedTable, fmt.Sprintf("other jobs write to its table %s, too: %s", j.Flush.To.Table,
				strings.Join(all[1:], ", ")),
				"each change is written once, in the order of its own job; "+
					"but the order between the jobs is undefined, and batches that change the same rows wait for each other",
				"let each job write columns of its own, or combine the jobs into one")
		}
	}
	return r.findings
}

const (
	// enoughRuns is the minimum number of past runs that is needed to estimate how long the next run takes. lastRuns is the number of past
	// runs that are read.
	enoughRuns, lastRuns = 3, 20
)

// examineRuns compares the schedules of the jobs with the durations of their past runs. It reads these durations from the history.
func examineRuns(ctx context.Context, c config.Config, under func(lockKey string) history) []Finding {
	r := &report{}
	for _, j := range c.Jobs {
		slots, err := schedule.ParseIn(j.Schedule, j.TimeZone)
		if err != nil || schedule.IsAlways(slots) {
			continue
		}
		runs, err := under(j.Lock).Runs(ctx, j.Name, lastRuns)
		if err != nil || len(runs) < enoughRuns {
			continue // the checks of Redis report this problem
		}
		r.subject = jobSubject(j.Name)
		r.tooLong(j, slots, medianOf(runs))
	}
	return r.findings
}

// history is the part of a ledger that returns past runs, the last run first.
type history interface {
	Runs(ctx context.Context, job string, n int) ([]job.Record, error)
}

// tooLong adds a finding if the runs of a job take longer than the time between two of its slots.
func (r *report) tooLong(j config.Job, slots schedule.Schedule, takes time.Duration) {
	from := time.Now()
	next := slots.Next(from)
	if next.IsZero() {
		return
	}
	period := slots.Next(next).Sub(next)
	together := time.Duration(1) // how many runs may be in progress at the same time
	if j.Overlap == config.OverlapAllow {
		together = max(1, time.Duration(j.MaxOverlap))
	}
	if period <= 0 || takes < together*period {
		return
	}
	what := fmt.Sprintf("half of its last runs took %v or longer, and it is due again after %v", takes.Round(time.Millisecond), period)
	switch {
	case together > 1:
		r.add(finding.LongRuns, what, fmt.Sprintf("slots are skipped because %d runs go on, "+
			"so the job runs less often than its schedule says", together),
			"a longer interval in schedule, or a higher max_overlap")
	case j.Overlap == config.OverlapForbid:
		r.add(finding.LongRuns, what, "slots are skipped because overlap is forbid, so the job runs less often than its schedule says",
			"a longer interval in schedule, or @always for a flush")
	case j.Overlap == config.OverlapReplace:
		r.add(finding.LongRuns.As(SeverityError), what,
			"each run is ended by the next one because overlap is replace, so no run may ever complete",
			"a longer interval in schedule, or overlap: forbid")
	default:
		r.add(finding.LongRuns, what, "runs pile up, because overlap is "+j.Overlap, "a longer interval in schedule, or overlap: forbid")
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
