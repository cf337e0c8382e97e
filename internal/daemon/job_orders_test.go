package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/diagnose"
	"baton/internal/job"
	"baton/internal/operate"
	"baton/internal/operate/direct"
	"baton/internal/redisledger"
)

// command adds a job that runs a shell script, and returns the job so that the test can change it.
func (l *jobLab) command(name, schedule, text string) *config.Job {
	l.config.Jobs = append(l.config.Jobs, config.Job{Name: name, Schedule: schedule, Command: config.Command{text}, Shell: true})
	return &l.config.Jobs[len(l.config.Jobs)-1]
}

func (l *jobLab) run(name, by string, force bool) operate.JobRun {
	l.t.Helper()
	run, err := l.remote.run(l.t.Context(), name, by, force)
	if err != nil {
		l.t.Fatal(err)
	}
	return run
}

func (l *jobLab) cancel(name, runID string) operate.Outcome {
	l.t.Helper()
	c, err := l.remote.cancel(l.t.Context(), name, runID, "by alice: enough")
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

func (l *jobLab) history(name string) []operate.Entry {
	l.t.Helper()
	entries, err := l.remote.to.History(l.t.Context(), name, "", 100)
	if err != nil {
		l.t.Fatal(err)
	}
	return entries
}

// ended waits for the end of a run.
func (l *jobLab) ended(name, id string) diagnose.Run {
	l.t.Helper()
	run, err := operate.WatchRun(l.t.Context(), l.remote.to, name, id, func(operate.JobRun) {})
	if err != nil {
		l.t.Fatal(err)
	}
	return run.Run
}

func TestManualRunIsForcedPastAnotherAndBothAreCancelled(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.command("report", "@yearly", "exec sleep 60")
	r := l.start()
	if c := l.cancel("report", ""); c.Code != operate.CodeNothing {
		t.Errorf("nothing ran: %+v", c)
	}
	first := l.run("report", "by bob", false)
	if _, err := l.remote.run(t.Context(), "report", "by alice", false); err == nil || !strings.Contains(err.Error(), "already running: its run "+first.Run.ID) {
		t.Errorf("a second one: %v", err)
	}
	second := l.run("report", "by alice: the first hangs", true)
	if j := l.state("report"); len(j.Open) != 2 || j.Running.ID != second.Run.ID || !j.Open[1].Forced || j.Open[1].By != "by alice: the first hangs" {
		t.Errorf("state: %+v", j)
	}
	if c := l.cancel("report", "of another"); c.Code != operate.CodeNothing {
		t.Errorf("a run that is not there: %+v", c)
	}
	if c := l.cancel("report", first.Run.ID); !slices.Equal(c.Runs, []string{first.Run.ID}) {
		t.Errorf("one of them: %+v", c)
	}
	if run := l.ended("report", first.Run.ID); run.State != "cancelled" || !strings.Contains(run.Error, "cancelled by alice: enough") || run.By != "by bob" || run.Forced {
		t.Errorf("the first: %+v", run)
	}
	if j := l.state("report"); j.Running == nil || j.Running.ID != second.Run.ID {
		t.Errorf("the other one: %+v", j)
	}
	if c := l.cancel("report", ""); !slices.Equal(c.Runs, []string{second.Run.ID}) {
		t.Errorf("all: %+v", c)
	}
	if run := l.ended("report", second.Run.ID); run.State != "cancelled" || !run.Forced || run.By != "by alice: the first hangs" || run.Trigger != "manual" {
		t.Errorf("the second: %+v", run)
	}
	if _, err := l.remote.cancel(t.Context(), "clicks", "", "by alice"); !errors.Is(err, operate.ErrNoJob) {
		t.Errorf("an unknown job: %v", err)
	}
	r.endsWell()
	if _, err := l.remote.cancel(t.Context(), "report", "", "by alice"); !errors.Is(err, operate.ErrNoLeader) {
		t.Errorf("without a leader: %v", err)
	}
}

func TestOrderForARunThatIsGivenAgainRunsItOnce(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.command("report", "@yearly", "exec sleep 60")
	r := l.start()
	const id = "0b9b3f6e-6f0a-4c43-8d5e-3c1f6b1d8a52"
	order := operate.Order{Kind: operate.KindRun, Job: "report", RunID: id, Force: true}
	again := func(when, state string) {
		t.Helper()
		out, err := l.remote.to.Do(t.Context(), order)
		if err != nil || out.RunID != id || out.Run == nil || out.Run.State != state || out.Code != operate.CodeDone {
			t.Errorf("%s: %+v, %v", when, out, err)
		}
	}
	again("at first", "running")
	again("while it runs", "running")
	l.cancel("report", "")
	l.ended("report", id)
	again("after it", "cancelled")
	other := l.run("report", "by bob", false)
	again("after another one", "cancelled")
	if j := l.state("report"); len(j.Open) > 1 || j.Running == nil || j.Running.ID != other.Run.ID {
		t.Errorf("what runs: %+v", j)
	}
	order.RunID = "m1 99999999999999 force by"
	if _, err := l.remote.to.Do(t.Context(), order); !errors.Is(err, operate.ErrInvalid) {
		t.Errorf("an id that is no UUID: %v", err)
	}
	l.cancel("report", "")
	_ = r.end()
}

// The leader that accepted an order has crashed. If the order is sent again, no node may answer that no leader has done it.
func TestOrderForARunThatIsGivenAgainMeetsNoLeader(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.command("report", "@yearly", "true")
	r := l.start()
	const id, next = "0b9b3f6e-6f0a-4c43-8d5e-3c1f6b1d8a52", "5d0a8c11-9a5e-4f0e-b0f2-7a1c2e3d4f55"
	order := operate.Order{Kind: operate.KindRun, Job: "report", RunID: id}
	if _, err := l.remote.to.Do(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	l.ended("report", id)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if out, err := l.remote.to.Do(t.Context(), order); err != nil || out.RunID != id || out.Run.State != "succeeded" {
		t.Errorf("a run that has ended: %+v, %v", out, err)
	}

	order.RunID = next
	if _, err := l.remote.to.Do(t.Context(), order); !errors.Is(err, operate.ErrNoLeader) {
		t.Errorf("an order that was never given: %v", err)
	}
	l.do("HSET", "{baton}:control", "run:report", fmt.Sprintf("%s %d - by alice", next, time.Now().Add(time.Minute).UnixMilli()))
	began, to := make(chan error, 1), l.remote.to // the next start changes it
	go func() {
		out, err := to.Do(t.Context(), order)
		if err == nil && out.RunID != next {
			err = fmt.Errorf("%+v", out)
		}
		began <- err
	}()
	select {
	case err := <-began:
		t.Fatalf("a request that still waits: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	r = l.start()
	if err := <-began; err != nil {
		t.Errorf("a request that the next leader takes: %v", err)
	}
	l.ended("report", next)
	_ = r.end()
}

func TestManualRunWaitsForAnotherOne(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	done := filepath.Join(t.TempDir(), "done")
	l.command("report", "@yearly", "test -e "+done+" || exec sleep 60").Overlap = "queue_one"
	r := l.start()
	first := l.run("report", "by bob", false)
	second := l.run("report", "by alice", false)
	if !second.Queued || second.Run.State != "queued" {
		t.Errorf("the second: %+v", second)
	}
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.cancel("report", first.Run.ID)
	if run := l.ended("report", second.Run.ID); run.State != "succeeded" || run.By != "by alice" {
		t.Errorf("the second: %+v", run)
	}
	_ = r.end()
}

func TestManualRunThatWaitsIsCancelled(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.command("report", "@yearly", "exec sleep 60").Overlap = "queue_one"
	r := l.start()
	first := l.run("report", "by bob", false)
	second := l.run("report", "by alice", false)
	if c := l.cancel("report", ""); len(c.Runs) != 2 || !slices.Contains(c.Runs, second.Run.ID) {
		t.Errorf("cancelled: %+v", c)
	}
	if _, err := operate.WatchRun(t.Context(), l.remote.to, "report", second.Run.ID, func(operate.JobRun) {}); err == nil || !strings.Contains(err.Error(), "cancelled by alice: enough") {
		t.Errorf("the one that waited: %v", err)
	}
	l.ended("report", first.Run.ID)
	_ = r.end()
}

func TestCancelTakesTheRetrialAway(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	// The retrial comes long before the next slot, which would replace it.
	l.command("report", "@every 10s", "exit 3").Retry = config.Retry{Limit: 5, Delay: 5 * time.Second}
	r := l.start()
	await(t, "the retrial", func() bool { return l.state("report").Retry != nil })
	j := l.state("report")
	if j.Retry.Attempt != 2 || *j.LastRun.ExitCode != 3 || !j.Command {
		t.Errorf("state: %+v, %+v", j, j.LastRun)
	}
	c := l.cancel("report", "")
	// The result may also name a run that has just ended.
	if c.Retry != 2 || slices.ContainsFunc(c.Runs, func(id string) bool { return id != j.LastRun.ID }) {
		t.Errorf("cancelled: %+v", c)
	}
	await(t, "its record", func() bool {
		return slices.ContainsFunc(l.history("report"), func(e operate.Entry) bool {
			return e.Run != nil && e.Run.State == "cancelled" && e.Run.Attempt == 2 && strings.Contains(e.Run.Error, "by alice: enough")
		})
	})
	_ = r.end()
}

func TestMissedSlotsAndExitCodesAreInTheHistory(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.command("report", "@every 1s", "echo so far so good; sleep 3.5; exit 4")
	r := l.start()
	var missed *operate.Missed
	await(t, "missed slots, and a run", func() bool {
		entries := l.history("report")
		run := slices.IndexFunc(entries, func(e operate.Entry) bool { return e.Run != nil })
		for _, e := range entries {
			// A machine that stands still misses slots during a run, and the next run shows these slots.
			if e.Missed != nil && e.Missed.Reason == string(job.ReasonOverlap) && e.Missed.Count >= 3 {
				missed = e.Missed
			}
		}
		return run >= 0 && missed != nil && *entries[run].Run.ExitCode == 4 && entries[run].Run.Output == "so far so good\n"
	})
	if missed.Last.Sub(missed.First) != time.Duration(missed.Count-1)*time.Second || missed.NodeID != "a" {
		t.Errorf("missed: %+v", missed)
	}
	entries := l.history("report")
	if first := entries[len(entries)-1].Missed; first == nil || first.Reason != string(job.ReasonUnknown) || first.Count != 0 {
		t.Errorf("that nothing was known is the beginning: %+v", first)
	}
	_ = r.end()
}

func TestSlotsThatPassedWhileNoNodeRanAreToldSo(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.command("report", "@every 1s", "true")
	r := l.start()
	await(t, "a run", func() bool { return l.state("report").LastRun != nil })
	_ = r.end()
	ended := time.Now()
	time.Sleep(3500 * time.Millisecond)
	next := start(t, l.config, nil)
	next.leads()
	var missed *operate.Missed
	await(t, "the slots that passed", func() bool {
		for _, e := range l.history("report") {
			if e.Missed != nil && e.Missed.Reason == string(job.ReasonNoLeader) {
				missed = e.Missed
			}
		}
		return missed != nil
	})
	if missed.Count < 2 || missed.First.Before(ended.Add(-time.Second)) {
		t.Errorf("missed: %+v, ended at %v", missed, ended)
	}
	_ = next.end()
}

func TestPauseOfAllEndsByItselfAndAJobOfAlwaysGoesOn(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "@always")
	other := l.command("report", "@yearly", "true")
	other.Lock = "other"
	r := l.start()
	await(t, "the run", func() bool { return l.state("views").Running != nil })
	until := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	p, err := l.remote.pauseJob(t.Context(), "", "by alice: restore", until)
	if err != nil || p.Was != nil || p.Code != operate.CodeDone {
		t.Errorf("pause: %+v, %v", p, err)
	}
	await(t, "the run to end", func() bool { return l.state("views").Running == nil })
	j := l.state("views")
	if j.Paused == nil || !j.Paused.All || !j.Paused.Until.Equal(until) || j.Paused.Reason != "by alice: restore" {
		t.Errorf("paused: %+v", j.Paused)
	}
	if next := l.state("report").NextRun; next.Before(until) {
		t.Errorf("the next run is promised for %v", next)
	}
	if _, err := l.remote.run(t.Context(), "report", "by bob", false); err == nil || !strings.Contains(err.Error(), "paused by alice: restore; baton job resume --all ends the pause") {
		t.Errorf("a job under another lock: %v", err)
	}
	if p, err := l.remote.resumeJob(t.Context(), "views", "by alice"); err != nil || p.Was != nil || p.Still == nil || !p.Still.All {
		t.Errorf("resumed alone: %+v, %v", p, err)
	}
	until = time.Now().Add(500 * time.Millisecond).Truncate(time.Millisecond)
	if p, err := l.remote.pauseJob(t.Context(), "", "by alice: restore", until); err != nil || p.Was == nil {
		t.Errorf("a shorter pause: %+v, %v", p, err)
	}
	await(t, "the run to go on", func() bool { return l.state("views").Running != nil })
	if late := time.Since(until); late < 0 || late > soon {
		t.Errorf("it went on %v after the end of the pause", late)
	}
	l.pauseAndResumeAll()
	_ = r.end()
}

func TestAPauseHasNobodyLeadUnderAnyLock(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "@always")
	other := l.command("report", "@yearly", "true")
	other.Lock = "other"
	r := l.start()
	vacant := func() bool {
		s, err := l.remote.to.Snapshot(t.Context())
		return err == nil && s.Leader == nil && len(s.Locks) == 1 && s.Locks[0].Leader == nil
	}
	led := func() bool {
		s, err := l.remote.to.Snapshot(t.Context())
		return err == nil && s.Leader != nil && len(s.Locks) == 1 && s.Locks[0].Leader != nil
	}
	await(t, "both locks to be led", led)
	if _, err := l.remote.pause(t.Context(), "by alice: restore", soon); err != nil {
		t.Fatal(err)
	}
	if !vacant() {
		t.Error("somebody leads after the pause was reported")
	}
	if _, err := l.remote.run(t.Context(), "report", "by bob", false); !errors.Is(err, operate.ErrNoLeader) {
		t.Errorf("a job under its own lock runs in a pause: %v", err)
	}
	if done, err := l.remote.resume(t.Context(), "by alice", soon); err != nil || done.Was == nil || done.Was.Reason != "by alice: restore" {
		t.Errorf("resume: %+v, %v", done, err)
	}
	await(t, "both locks to be led again", led)
	checkHistories(t, l.remote.to)
	_ = r.end()
}

// checkHistories requires a pause and a second term of each lock.
func checkHistories(t *testing.T, site *direct.Site) {
	t.Helper()
	await(t, "the second terms", func() bool {
		s, err := site.Snapshot(t.Context())
		return err == nil && s.Leader != nil && s.Locks[0].Last != nil && s.Locks[0].Last.Event == "won"
	})
	histories, err := site.LockEvents(t.Context(), 10)
	if err != nil || len(histories) != 2 {
		t.Fatalf("%v, %v", histories, err)
	}
	for lock, events := range histories {
		var got []string
		for _, e := range events {
			if e.Event == "won" || e.InOrder() {
				got = append(got, e.Event+e.Code)
			}
		}
		if want := []string{"won", "stepped_downpaused", "won"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", lock, got, want)
		}
	}
}

// pauseAndResumeAll pauses all jobs, and ends the pause early.
func (l *jobLab) pauseAndResumeAll() {
	l.t.Helper()
	if _, err := l.remote.pauseJob(l.t.Context(), "", "by alice", time.Time{}); err != nil {
		l.t.Fatal(err)
	}
	for _, name := range []string{"views", "report"} {
		if j := l.state(name); j.Paused == nil {
			l.t.Errorf("job %s is not paused", name)
		}
	}
	if p, err := l.remote.resumeJob(l.t.Context(), "", "by alice"); err != nil || p.Was == nil || p.Was.Reason != "by alice" {
		l.t.Errorf("resumed: %+v, %v", p, err)
	}
	for _, name := range []string{"views", "report"} {
		if j := l.state(name); j.Paused != nil {
			l.t.Errorf("job %s is paused: %+v", name, j.Paused)
		}
	}
}

func TestJobUnderALockOfItsOwnIsDrivenThere(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.command("report", "@yearly", "true").Lock = "other"
	r := l.start()
	await(t, "the job's own lock to be held", func() bool { held, _ := l.conn.Do("EXISTS", "other"); return held == int64(1) })
	run := l.run("report", "by alice", false)
	if ended := l.ended("report", run.Run.ID); ended.State != "succeeded" {
		t.Errorf("ended: %+v", ended)
	}
	if p, err := l.remote.pauseJob(t.Context(), "report", "by alice", time.Time{}); err != nil || p.Was != nil {
		t.Errorf("pause: %+v, %v", p, err)
	}
	if n, err := l.conn.Do("HEXISTS", "{other}:job:report", "paused_reason"); err != nil || n != int64(1) {
		t.Errorf("the pause is not in its ledger: %v, %v", n, err)
	}
	if key, why := operate.Vacant(t.Context(), l.remote.to, "report"); key != "other" || why != "" {
		t.Errorf("lock %q: %q", key, why)
	}
	_ = r.end()
	if key, why := operate.Vacant(t.Context(), l.remote.to, "report"); key != "other" || why == "" {
		t.Errorf("lock %q: %q", key, why)
	}
}

// If the requester of an order is gone, a leader that comes much later does not execute the order.
func TestOrdersThatNobodyWaitsForAreNotCarriedOut(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.command("report", "@yearly", "true")
	l.config = l.config.WithDefaults()
	store, err := site.OpenRedis(l.config)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ledger := redisledger.NewLedger(store, redisledger.LedgerOptions{LockKey: l.config.Election.LockKey})
	if err := ledger.Request(t.Context(), redisledger.Request{Job: "report", ID: "late", By: "by alice"}, -time.Second); err != nil {
		t.Fatal(err)
	}
	if err := ledger.OrderCancel(t.Context(), redisledger.Cancel{Job: "report", ID: "late", By: "by alice"}, -time.Second); err != nil {
		t.Fatal(err)
	}
	r := l.start()
	await(t, "the orders to go", func() bool {
		o, err := ledger.Orders(t.Context(), nil)
		return err == nil && len(o.Requests)+len(o.Cancels) == 0
	})
	if j := l.state("report"); j.LastRun != nil || j.Running != nil {
		t.Errorf("it was run: %+v", j)
	}
	_ = r.end()
}
