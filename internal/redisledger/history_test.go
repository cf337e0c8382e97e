package redisledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"baton/internal/job"
)

// missedAt returns one missed slot of job "users" in the given minute.
func missedAt(minute int, reason job.Reason) job.Missed {
	at := slotZero.Add(time.Duration(minute) * time.Minute)
	return job.Missed{Job: "users", Reason: reason, Count: 1, First: at, Slot: at, After: at.Add(-time.Minute)}
}

func miss(t *testing.T, l *Ledger, m job.Missed) {
	t.Helper()
	for range 2 { // a reply was lost
		if err := l.Miss(t.Context(), newRun("", 0, "a").Term, m); err != nil {
			t.Fatal(err)
		}
	}
}

// entriesOf returns the history in a short form, the newest entry first: the id of a run, or the reason, the number, and the first and
// last minute of missed slots.
func entriesOf(t *testing.T, l *Ledger) []string {
	t.Helper()
	history, err := l.History(t.Context(), "users", 100)
	if err != nil {
		t.Fatal(err)
	}
	short := []string{}
	for _, e := range history {
		if e.Missed == nil {
			short = append(short, e.ID)
			continue
		}
		short = append(short, fmt.Sprintf("%s %d: %.0f-%.0f", e.Missed.Reason, e.Missed.Count,
			e.Missed.First.Sub(slotZero).Minutes(), e.Missed.Slot.Sub(slotZero).Minutes()))
	}
	return short
}

func TestMissedSlotsThatTouchAreOneEntryOfTheHistory(t *testing.T) {
	_, l := ledgerRig(t)
	run := func(id string, minute int) {
		claim(t, l, newRun(id, minute, "a"))
		finish(t, l, ended(newRun(id, minute, "a"), job.StateSucceeded, ""))
	}
	run("r1", 1)
	for minute := 2; minute < 5; minute++ {
		miss(t, l, missedAt(minute, job.ReasonOverlap))
	}
	many := missedAt(8, job.ReasonOverlap)
	many.First, many.After, many.Count = slotZero.Add(5*time.Minute), slotZero.Add(4*time.Minute), 4
	miss(t, l, many)
	miss(t, l, missedAt(3, job.ReasonOverlap)) // a late repetition of the same request
	miss(t, l, missedAt(9, job.ReasonPaused))
	miss(t, l, missedAt(11, job.ReasonPaused)) // the slot of minute 10 was run
	run("r2", 12)
	unjoined := missedAt(13, job.ReasonPaused)
	unjoined.After = time.Time{}
	miss(t, l, unjoined)
	want := []string{"paused 1: 13-13", "r2", "paused 1: 11-11", "paused 1: 9-9", "overlap 7: 2-8", "r1"}
	if diff := cmp.Diff(want, entriesOf(t, l)); diff != "" {
		t.Error(diff)
	}
	if runs, err := l.Runs(t.Context(), "users", 2); err != nil || len(runs) != 2 || runs[0].ID != "r2" || runs[1].ID != "r1" {
		t.Errorf("runs alone: %+v, %v", runs, err)
	}
	if s := stateOf(t, l, "users"); !s.MissedUntil.Equal(slotZero.Add(13*time.Minute)) || !s.LastSlot.Equal(slotZero.Add(12*time.Minute)) {
		t.Errorf("state: %+v", s)
	}
}

func TestMissedSlotsSayWhy(t *testing.T) {
	_, l := ledgerRig(t)
	m := missedAt(1, job.ReasonLedger)
	m.Err = errors.New("redis is away")
	miss(t, l, m)
	e, err := l.History(t.Context(), "users", 1)
	if err != nil || len(e) != 1 || e[0].State != StateMissed || e[0].Error != "redis is away" || e[0].Term != newRun("", 0, "a").Term ||
		time.Since(e[0].At) > time.Minute {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestThatNothingWasKnownIsSaidOnce(t *testing.T) {
	_, l := ledgerRig(t)
	unknown := missedAt(5, job.ReasonUnknown)
	unknown.Count, unknown.First, unknown.After = 0, time.Time{}, time.Time{}
	miss(t, l, unknown)
	unknown.Slot = slotZero.Add(time.Hour)
	miss(t, l, unknown)
	if diff := cmp.Diff([]string{"unknown 0: 5-5"}, entriesOf(t, l)); diff != "" {
		t.Error(diff)
	}
}

func TestReportOfNoSlotsIsNotInTheHistory(t *testing.T) {
	_, l := ledgerRig(t)
	claim(t, l, newRun("r1", 1, "a"))
	at := newRun("", 5, "").Slot
	miss(t, l, job.Missed{Job: "users", Reason: "none", First: at, Slot: at})
	if got := entriesOf(t, l); len(got) != 0 {
		t.Errorf("history: %q", got)
	}
	if s := stateOf(t, l, "users"); !s.MissedUntil.Equal(at) {
		t.Errorf("%+v", s)
	}
}

func TestRunThatIsNotOpenIsNotLost(t *testing.T) {
	_, l := ledgerRig(t)
	finish(t, l, ended(newRun("r1", 1, "a"), job.StateLost, "its leader has gone"))
	if got := entriesOf(t, l); len(got) != 0 {
		t.Errorf("recorded: %v", got)
	}
}

func TestHistoryTellsAllOfARun(t *testing.T) {
	_, l := ledgerRig(t)
	ask(t, l, "m1")
	r := manual("m1", "a")
	r.By, r.Forced = "by alice: month's end", true
	claim(t, l, r)
	if s := stateOf(t, l, "users"); len(s.Running) != 1 || s.Running[0].Run.By != r.By || !s.Running[0].Forced {
		t.Errorf("running: %+v", s.Running)
	}
	rec := ended(r, job.StateFailed, "exit status 3")
	rec.Result.Output = strings.Repeat("ü", maxOutputTail) + "the end\xff"
	finish(t, l, rec)
	runs, err := l.Runs(t.Context(), "users", 1)
	if err != nil || len(runs) != 1 {
		t.Fatalf("%+v, %v", runs, err)
	}
	output := runs[0].Result.Output
	if !utf8.ValidString(output) || len(output) > maxOutputTail+10 || !strings.HasPrefix(output, "…") ||
		!strings.HasSuffix(output, "üthe end\uFFFD") {
		t.Errorf("%d bytes of output, that end in %q", len(output), output[len(output)-20:])
	}
	runs[0].Result.Output, rec.Result.Output = "", ""
	rec.Run.Slot = rec.Run.Slot.UTC()
	if diff := cmp.Diff(rec, runs[0], cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		t.Error(diff)
	}
	if last := stateOf(t, l, "users").Last; len(last.Result.Output) > 520 || *last.Result.ExitCode != 3 || last.By != r.By {
		t.Errorf("the last result is to be small: %+v", last)
	}
}

// The entries have the form that an earlier version wrote.
func TestOldEntriesOfTheHistoryStayReadable(t *testing.T) {
	g, l := ledgerRig(t)
	g.Do("XADD", "{baton}:job:users:runs", "*", "id", "r1", "state", "succeeded", "slot", slotZero.UnixMilli(),
		"trigger", "schedule", "attempt", 1, "node", "node-a", "owner", "a", "epoch", 7, "started", slotZero.UnixMilli(),
		"finished", slotZero.Add(time.Second).UnixMilli(), "rows", 5, "dead", 0, "error", "")
	g.Do("XADD", "{baton}:job:users:runs", "*", "kind", "of a later version")
	want := job.Record{Run: newRun("r1", 0, "a"), State: job.StateSucceeded, Started: slotZero, Finished: slotZero.Add(time.Second),
		Result: job.Result{Rows: 5}}
	runs, err := l.Runs(t.Context(), "users", 5)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]job.Record{want}, runs); diff != "" {
		t.Error(diff)
	}
}

func TestHistoryIsCappedByCountAndAge(t *testing.T) {
	g, l := ledgerRig(t)
	few := NewLedger(g.store, LedgerOptions{LockKey: "baton", Keep: 20, MaxAge: time.Hour})
	long, short := time.Now().Add(-2*time.Hour).UnixMilli(), time.Now().Add(-time.Minute).UnixMilli()
	for _, at := range []int64{long, short} {
		g.Do("XADD", "{baton}:job:users:runs", fmt.Sprintf("%d-1", at), "id", fmt.Sprint(at), "state", "succeeded")
	}
	finish(t, l, ended(newRun("0", 0, "a"), job.StateSucceeded, ""))
	if diff := cmp.Diff([]string{"0", fmt.Sprint(short), fmt.Sprint(long)}, entriesOf(t, l)); diff != "" {
		t.Errorf("of any age: %s", diff)
	}
	miss(t, few, missedAt(1, job.ReasonOverlap))
	if diff := cmp.Diff([]string{"overlap 1: 1-1", "0", fmt.Sprint(short)}, entriesOf(t, l)); diff != "" {
		t.Errorf("of an hour: %s", diff)
	}
	for i := range 30 {
		finish(t, few, ended(newRun(fmt.Sprint("x", i), i, "a"), job.StateSucceeded, ""))
	}
	if got := entriesOf(t, l); len(got) != 20 || got[0] != "x29" {
		t.Errorf("%d entries: %v", len(got), got)
	}
	for i := range 2 * defaultKeep {
		finish(t, l, ended(newRun(fmt.Sprint("y", i), i, "a"), job.StateSucceeded, ""))
	}
	if n := g.Num("XLEN", "{baton}:job:users:runs"); n != defaultKeep {
		t.Errorf("%d entries are kept, want %d", n, defaultKeep)
	}
}

// A leader reports the end of a failed run, and its reply is lost. The next leader makes the second attempt, whose entry takes the place of
// the first in a short history. The repeated report must not grant the second attempt once more.
func TestARepeatedEndGrantsNoRetrialTwice(t *testing.T) {
	g, _ := ledgerRig(t)
	for _, keep := range []int{1, 2} {
		l := NewLedger(g.store, LedgerOptions{LockKey: "baton", Keep: keep})
		slot := time.Now().Truncate(time.Second).Add(-time.Minute)
		attempt := func(id string, n int) job.Run {
			r := job.Run{ID: id, Job: fmt.Sprint("keeps", keep), Slot: slot, Attempt: n, Trigger: job.TriggerSchedule,
				Term: job.Term{Owner: "a", Epoch: 1, NodeID: "n"}}
			if n > 1 {
				r.Trigger = job.TriggerRetry
			}
			return r
		}
		end := func(id string, n int, state job.State, retryAt time.Time) {
			t.Helper()
			finish(t, l, job.Record{Run: attempt(id, n), State: state, Started: slot, Finished: slot.Add(time.Second), RetryAt: retryAt})
		}
		claim(t, l, attempt("1", 1))
		end("1", 1, job.StateFailed, slot.Add(2*time.Second))
		claim(t, l, attempt("2", 2))
		end("2", 2, job.StateSucceeded, time.Time{})
		end("1", 1, job.StateFailed, slot.Add(2*time.Second))
		if err := l.Claim(t.Context(), attempt("3", 2)); err == nil {
			t.Errorf("with %d entries the second attempt was granted twice", keep)
		}
	}
}
