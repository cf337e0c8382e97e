package daemon

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/testsupport"
)

// idleLab returns a node with many flushes that have nothing to do.
func idleLab(t *testing.T, jobs int, key string) *jobLab {
	t.Helper()
	l := newJobLab(t)
	for i := range jobs {
		l.config.Jobs = append(l.config.Jobs, config.Job{
			Name: fmt.Sprint("job", i), Schedule: "@every 1s", Flush: config.Flush{
				From:    config.From{Type: "counters", Key: fmt.Sprintf(key, i)},
				To:      config.To{Database: "main", Table: "articles", Key: []string{"id"}},
				Columns: map[string]config.Column{"id": {From: "$field"}, "views": {From: "$value", Op: "add"}},
			},
		})
	}
	return l
}

// idled reports whether the newest entry in a job's history stands for at least this number of runs with nothing to do.
func (l *jobLab) idled(name string, runs int) bool {
	l.t.Helper()
	h, err := l.remote.to.History(l.t.Context(), name, "", 1)
	return err == nil && len(h) == 1 && h[0].Run != nil && h[0].Run.Idle != nil && h[0].Run.Idle.Runs >= runs
}

// runsOf returns the number of runs in a job's history.
func (l *jobLab) runsOf(name string) (runs int64) {
	l.t.Helper()
	h, err := l.remote.to.History(l.t.Context(), name, "", 1000)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range h {
		switch {
		case e.Run != nil && e.Run.Idle != nil:
			runs += int64(e.Run.Idle.Runs)
		case e.Run != nil:
			runs++
		}
	}
	return runs
}

// A run with nothing to do costs one check and one claim. One command checks sixteen shards.
func TestFlushesWithNothingToDoCostRedisLittle(t *testing.T) {
	t.Parallel()
	const jobs = 20
	l := idleLab(t, jobs, "views%d:[0-15]")
	r := l.start()
	for i := range jobs {
		await(t, "idle runs", func() bool { return l.idled(fmt.Sprint("job", i), 2) })
	}
	c := testsupport.Client{T: t, Conn: l.conn}
	// On a busy machine a check may take too long, and then its jobs run in the usual way, with a script for each shard. Their next check
	// is cheap again.
	runs := func() (all int64) {
		for i := range jobs {
			all += l.runsOf(fmt.Sprint("job", i))
		}
		return all
	}
	testsupport.AwaitNoError(t, "runs with nothing to do that cost little", func() error {
		first := runs()
		before := c.Calls()
		time.Sleep(2 * time.Second) // some runs
		after := c.Calls()
		slots := runs() - first
		var all int64
		for name, n := range after {
			all += n - before[name]
		}
		scripts := after["evalsha"] - before["evalsha"]
		t.Logf("%d runs of idle jobs took %d scripts and %d commands in all", slots, scripts, all)
		// There is one check and one claim for each job; the other requests belong to the lock.
		if slots < jobs || scripts > slots+slots/2+20 || all > 11*slots {
			return fmt.Errorf("%d scripts and %d commands for %d runs", scripts, all, slots)
		}
		return nil
	})
	r.endsWell()
}

// A slot whose run had nothing to do is also recorded.
func TestEverySlotOfAnIdleFlushIsAccountedFor(t *testing.T) {
	t.Parallel()
	l := idleLab(t, 1, "views%d")
	r := l.start()
	await(t, "idle runs", func() bool { return l.idled("job0", 2) })
	l.do("HINCRBY", "views0", "7", 10)
	l.awaitRows("[[7 10]]")
	await(t, "idle runs after one with work", func() bool { return l.idled("job0", 2) })

	// A wrong table is noticed as soon as there are rows to write, and then the job is no longer idle.
	l.db.Exec(t, "ALTER TABLE articles RENAME TO moved")
	l.do("HINCRBY", "views0", "7", 1)
	await(t, "a failure", func() bool { return l.state("job0").ConsecutiveFailures > 1 })
	l.db.Exec(t, "ALTER TABLE moved RENAME TO articles")
	l.awaitRows("[[7 11]]")
	await(t, "idle runs after failures", func() bool { return l.idled("job0", 3) })

	await(t, "a lag of nothing", func() bool { return r.metric(`baton_flush_lag_seconds{job="job0"}`) == "0" })
	j := l.state("job0")
	if j.ConsecutiveFailures != 0 || len(j.Open) > 0 || j.LastRun == nil || j.LastRun.State != "succeeded" {
		t.Errorf("state: %+v, last run %+v", j, j.LastRun)
	}
	r.endsWell()
	h, err := l.remote.to.History(t.Context(), "job0", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	seen, succeeded := map[int64]bool{}, 0
	var first, last int64
	for _, e := range h { // the newest first
		var from, to int64
		var n int
		switch {
		case e.Missed != nil && e.Missed.Count > 0:
			from, to, n = e.Missed.First.Unix(), e.Missed.Last.Unix(), e.Missed.Count
		case e.Run != nil && e.Run.Idle != nil:
			from, to, n = e.Run.Idle.First.Unix(), e.Run.Slot.Unix(), e.Run.Idle.Runs
		case e.Run != nil:
			from, to, n = e.Run.Slot.Unix(), e.Run.Slot.Unix(), 1
		default:
			continue
		}
		if int64(n) != to-from+1 {
			t.Errorf("%d slots from %d to %d: %+v", n, from, to, e)
		}
		if e.Run != nil && e.Run.State == "succeeded" {
			succeeded += n
		}
		for slot := from; slot <= to; slot++ {
			if seen[slot] {
				t.Errorf("slot %d is there twice", slot)
			}
			seen[slot] = true
		}
		if last == 0 {
			last = to
		}
		first = from
	}
	for slot := first; slot <= last; slot++ {
		if !seen[slot] {
			t.Errorf("slot %d is not accounted for", slot)
		}
	}
	if succeeded < 8 {
		t.Errorf("only %d runs succeeded", succeeded)
	}
	if n := strconv.Itoa(len(h)); len(h) > 12 {
		t.Errorf("the history has %s entries", n)
	}
}

// The metrics of runs also count runs with nothing to do.
func TestMetricsCountRunsWithNothingToDo(t *testing.T) {
	t.Parallel()
	l := idleLab(t, 1, "views%d")
	r := l.start()
	await(t, "idle runs", func() bool { return l.idled("job0", 3) })
	counted := func() int {
		n, _ := strconv.Atoi(r.metric(`baton_job_runs_total{job="job0",result="succeeded",trigger="schedule"}`))
		return n
	}
	succeeded := func() float64 {
		at, err := strconv.ParseFloat(r.metric(`baton_job_last_success_timestamp_seconds{job="job0"}`), 64)
		if err != nil {
			t.Errorf("the last success: %v", err)
		}
		return at
	}
	before, last := counted(), succeeded()
	await(t, "three more", func() bool { return counted() >= before+3 })
	await(t, "a later success", func() bool { return succeeded() >= last+3 })
	r.endsWell()
}
