package redisledger

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"baton/internal/job"
)

// idleRun returns the record of a run that has found nothing to do.
func idleRun(id string, minute int, owner string) job.Record {
	rec := ended(newRun(id, minute, owner), job.StateSucceeded, "")
	rec.Result = job.Result{}
	return rec
}

func claimIdle(t *testing.T, l *Ledger, recs ...job.Record) {
	t.Helper()
	if err := errors.Join(l.ClaimIdle(t.Context(), recs)...); err != nil {
		t.Fatal(err)
	}
}

// folded returns the history in a short form, like entriesOf, with the number of runs of each entry, and their first and last minute.
func folded(t *testing.T, l *Ledger) []string {
	t.Helper()
	history, err := l.History(t.Context(), "users", 100)
	if err != nil {
		t.Fatal(err)
	}
	short := entriesOf(t, l)
	for i, e := range history {
		if e.Idle != nil {
			short[i] = fmt.Sprintf("%s %d: %.0f-%.0f", e.ID, e.Idle.Runs,
				e.Idle.First.Sub(slotZero).Minutes(), e.Slot.Sub(slotZero).Minutes())
		}
	}
	return short
}

func wantFolded(t *testing.T, l *Ledger, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, folded(t, l)); diff != "" {
		t.Error(diff)
	}
}

func TestIdleRunsThatFollowOneAnotherAreOneEntryOfTheHistory(t *testing.T) {
	g, l := ledgerRig(t)
	run := func(id string, minute int) {
		claim(t, l, newRun(id, minute, "a"))
		finish(t, l, ended(newRun(id, minute, "a"), job.StateSucceeded, ""))
	}
	run("r1", 1)
	for minute := 2; minute < 6; minute++ {
		claimIdle(t, l, idleRun(fmt.Sprint("i", minute), minute, "a"))
	}
	wantFolded(t, l, "i2 4: 2-5", "r1")

	// Any other entry separates the idle runs before it from the idle runs after it.
	run("r6", 6)
	claimIdle(t, l, idleRun("i7", 7, "a"))
	miss(t, l, missedAt(8, job.ReasonOverlap))
	claimIdle(t, l, idleRun("i9", 9, "a"))
	caughtUp := idleRun("i10", 10, "a")
	caughtUp.Trigger = job.TriggerCatchUp
	claimIdle(t, l, caughtUp)
	claimIdle(t, l, idleRun("i11", 11, "a"))
	g.Do("SET", "baton", "b", "PX", 60_000) // another term begins
	claimIdle(t, l, idleRun("i12", 12, "b"))
	// A run that is in progress at that time has its own slot.
	claim(t, l, newRun("r13", 13, "b"))
	claimIdle(t, l, idleRun("i14", 14, "b"))
	finish(t, l, ended(newRun("r13", 13, "b"), job.StateSucceeded, ""))
	// An entry covers one hour at most.
	for minute := 15; minute < 15+70; minute++ {
		claimIdle(t, l, idleRun(fmt.Sprint("i", minute), minute, "b"))
	}
	wantFolded(t, l, "i75 10: 75-84", "i15 60: 15-74", "r13", "i14 1: 14-14", "i12 1: 12-12", "i11 1: 11-11", "i10 1: 10-10",
		"i9 1: 9-9", "overlap 1: 8-8", "i7 1: 7-7", "r6", "i2 4: 2-5", "r1")

	s := stateOf(t, l, "users")
	last := idleRun("i84", 84, "b")
	if s.Last == nil || s.Last.ID != "i75" || !s.Last.Slot.Equal(last.Slot) || !s.LastSlot.Equal(last.Slot) ||
		!s.LastSuccess.Equal(last.Finished) || !s.Fresh.Equal(last.Started) || s.ConsecutiveFailures != 0 || len(s.Running) != 0 {
		t.Errorf("how the job stands: %+v, last run %+v", s, s.Last)
	}
	if found, err := l.FindRun(t.Context(), "users", "i75", 10); err != nil || found == nil || !found.Slot.Equal(last.Slot) {
		t.Errorf("the entry that grows, by its id: %+v, %v", found, err)
	}
}

func TestIdleRunsEndARowOfFailures(t *testing.T) {
	_, l := ledgerRig(t)
	claim(t, l, newRun("r1", 1, "a"))
	finish(t, l, ended(newRun("r1", 1, "a"), job.StateFailed, "no table"))
	claimIdle(t, l, idleRun("i2", 2, "a"))
	s := stateOf(t, l, "users")
	if s.ConsecutiveFailures != 0 || s.Last.State != job.StateSucceeded || s.Last.Error != "" || s.Last.Result.Rows != 0 {
		t.Errorf("after one: %+v, last run %+v", s, s.Last)
	}
	claim(t, l, newRun("r3", 3, "a"))
	finish(t, l, ended(newRun("r3", 3, "a"), job.StateFailed, "no table"))
	if s := stateOf(t, l, "users"); s.ConsecutiveFailures != 1 {
		t.Errorf("%d failures in a row after one", s.ConsecutiveFailures)
	}
	wantFolded(t, l, "r3", "i2 1: 2-2", "r1")
}

// The entry that more runs may join is not in the stream, but must be returned at its place among the other entries.
func TestHistoryIsReadPageByPageFromTheIdleRunsOn(t *testing.T) {
	_, l := ledgerRig(t)
	for minute := range 5 {
		claim(t, l, newRun(fmt.Sprint("r", minute), minute, "a"))
		finish(t, l, ended(newRun(fmt.Sprint("r", minute), minute, "a"), job.StateSucceeded, ""))
	}
	claimIdle(t, l, idleRun("i5", 5, "a"))
	claimIdle(t, l, idleRun("i6", 6, "a"))
	for n := 1; n < 8; n++ {
		var got []string
		for before := ""; ; {
			page, err := l.HistoryBefore(t.Context(), "users", before, n)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) > n {
				t.Fatalf("%d entries in a page of %d", len(page), n)
			}
			for _, e := range page {
				got, before = append(got, e.ID), e.Entry
			}
			if len(page) < n {
				break
			}
		}
		if diff := cmp.Diff([]string{"i5", "r4", "r3", "r2", "r1", "r0"}, got); diff != "" {
			t.Errorf("in pages of %d: %s", n, diff)
		}
	}
	runs, err := l.Runs(t.Context(), "users", 2)
	if err != nil || len(runs) != 2 || runs[0].ID != "i5" || runs[1].ID != "r4" {
		t.Errorf("the last two runs: %+v, %v", runs, err)
	}
}

// Entries of a version without idle runs must be read in the right order.
func TestIdleRunsStandInTheHistoryBeforeWhatAnOlderVersionAdded(t *testing.T) {
	g, l := ledgerRig(t)
	claimIdle(t, l, idleRun("i1", 1, "a"))
	later := fmt.Sprintf("%d-0", time.Now().Add(time.Hour).UnixMilli())
	g.Do("XADD", "{baton}:job:users:runs", later, "id", "r2", "state", "succeeded", "slot", "1")
	wantFolded(t, l, "r2", "i1 1: 1-1")
	claimIdle(t, l, idleRun("i3", 3, "a"))
}

// The test limits the number of commands of a run that finds nothing to do, and of a run that does work, so that a new command is
// noticed.
func TestWhatARunCostsRedis(t *testing.T) {
	g, l := ledgerRig(t)
	const jobs = 20
	recs := func(minute int) []job.Record {
		all := make([]job.Record, jobs)
		for i := range all {
			all[i] = idleRun(fmt.Sprintf("i%d-%d", minute, i), minute, "a")
			all[i].Job = fmt.Sprint("job", i)
		}
		return all
	}
	claimIdle(t, l, recs(1)...) // loads the script, and creates the hashes
	sum := func(calls map[string]int64) (n int64) {
		for _, c := range calls {
			n += c
		}
		return n
	}
	idle := g.CallsOf(func() { claimIdle(t, l, recs(2)...) })
	if sent, inner := idle["evalsha"], sum(idle)-idle["evalsha"]; sent != jobs || inner > 6*jobs {
		t.Errorf("%d idle runs: %d commands sent, %d inner ones: %v", jobs, sent, inner, idle)
	}
	r := newRun("r3", 3, "a")
	r.Job = "job0"
	full := g.CallsOf(func() {
		claim(t, l, r)
		finish(t, l, ended(r, job.StateSucceeded, ""))
	})
	if n := sum(full); n > 2+6+9 { // finish also moves the idle runs to the history
		t.Errorf("a run with work: %d commands: %v", n, full)
	}
}

func TestIdleRunsOfAServerThatHasForgottenTheScript(t *testing.T) {
	g, l := ledgerRig(t)
	claimIdle(t, l, idleRun("i1", 1, "a"))
	g.Do("SCRIPT", "FLUSH")
	other := idleRun("j2", 2, "a")
	other.Job = "others"
	claimIdle(t, l, idleRun("i2", 2, "a"), other)
	wantFolded(t, l, "i1 2: 1-2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range l.ClaimIdle(ctx, []job.Record{idleRun("i3", 3, "a"), other}) {
		if err == nil {
			t.Error("granted with an ended context")
		}
	}
}
