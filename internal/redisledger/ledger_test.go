package redisledger

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"baton/internal/job"
)

var slotZero = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// newRun returns a run of job "users" in the given minute, under a term of the given owner.
func newRun(id string, minute int, owner string) job.Run {
	return job.Run{
		ID: id, Job: "users", Slot: slotZero.Add(time.Duration(minute) * time.Minute),
		Trigger: job.TriggerSchedule, Attempt: 1, Term: job.Term{NodeID: "node-" + owner, Owner: owner, Epoch: 7},
	}
}

func ended(r job.Run, s job.State, text string) job.Record {
	return job.Record{
		Run: r, State: s, Started: r.Slot.Add(time.Second), Finished: r.Slot.Add(3 * time.Second),
		Result: job.Result{Rows: 12, Dead: 1, ExitCode: new(3)}, Error: text,
	}
}

// ledgerRig returns a ledger whose lock the owner "a" holds.
func ledgerRig(t *testing.T) (*rig, *Ledger) {
	g := newRig(t)
	g.Do("SET", "baton", "a", "PX", 60_000)
	return g, NewLedger(g.store, LedgerOptions{LockKey: "baton"})
}

func claim(t *testing.T, l *Ledger, r job.Run) {
	t.Helper()
	if err := l.Claim(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func finish(t *testing.T, l *Ledger, rec job.Record) {
	t.Helper()
	if err := l.Finish(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
}

func stateOf(t *testing.T, l *Ledger, name string) JobState {
	t.Helper()
	states, err := l.Jobs(t.Context(), []string{name})
	if err != nil || len(states) != 1 {
		t.Fatalf("%d states, %v", len(states), err)
	}
	return states[0]
}

func TestSlotIsClaimedOnceAndOnlyForwards(t *testing.T) {
	_, l := ledgerRig(t)
	claim(t, l, newRun("r1", 5, "a"))
	for _, c := range []struct {
		minute int
		want   error
	}{{5, job.ErrSlotTaken}, {4, job.ErrSlotTaken}, {6, nil}, {5, job.ErrSlotTaken}} {
		err := l.Claim(t.Context(), newRun(fmt.Sprint("other", c.minute), c.minute, "a"))
		if !errors.Is(err, c.want) {
			t.Errorf("minute %d: %v, want %v", c.minute, err, c.want)
		}
	}
	if got := stateOf(t, l, "users").LastSlot; !got.Equal(slotZero.Add(6 * time.Minute)) {
		t.Errorf("last slot: %v", got)
	}
}

func TestOnlyTheLocksOwnerClaims(t *testing.T) {
	g, l := ledgerRig(t)
	if err := l.Claim(t.Context(), newRun("r1", 5, "b")); !errors.Is(err, job.ErrNotLeader) || !strings.Contains(err.Error(), `owner "a"`) {
		t.Errorf("another owner: %v", err)
	}
	g.Do("DEL", "baton")
	if err := l.Claim(t.Context(), newRun("r1", 5, "a")); !errors.Is(err, job.ErrNotLeader) {
		t.Errorf("no lock: %v", err)
	}
	if n := g.Num("EXISTS", "{baton}:job:users"); n != 0 {
		t.Error("a refused claim has left something")
	}
	g.Do("RPUSH", "baton", "a")
	if err := l.Claim(t.Context(), newRun("r1", 5, "a")); err == nil || errors.Is(err, job.ErrNotLeader) {
		t.Errorf("lock of another type: %v", err)
	}
}

func TestOfTwoRacingOwnersExactlyOneClaims(t *testing.T) {
	g, l := ledgerRig(t)
	other := NewLedger(openStore(t, g.redis.URL()), LedgerOptions{LockKey: "baton"})
	for minute := range 50 {
		var won atomic.Int64
		var racers sync.WaitGroup
		for i, ledger := range []*Ledger{l, other, l, other} {
			racers.Go(func() {
				// Both owners believe that they lead, but only the owner of the lock does.
				err := ledger.Claim(t.Context(), newRun(fmt.Sprint(minute, i), minute, []string{"a", "b"}[i%2]))
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, job.ErrSlotTaken) && !errors.Is(err, job.ErrNotLeader):
					t.Error(err)
				}
			})
		}
		racers.Go(func() {
			if _, err := g.Conn.Do("SET", "baton", []string{"b", "a"}[minute%2], "PX", 60_000); err != nil {
				t.Error(err)
			}
		})
		racers.Wait()
		if won.Load() > 1 {
			t.Fatalf("slot %d was claimed %d times", minute, won.Load())
		}
	}
	if err := l.Claim(t.Context(), newRun("last", 50, "a")); err != nil {
		t.Error(err)
	}
}

func TestClaimWhoseReplyWasLostIsStillTheRunsOwn(t *testing.T) {
	g, _ := ledgerRig(t)
	g.loadScripts()
	p := g.redis.Proxy()
	l := NewLedger(openStore(t, g.redis.URLThrough(p)), LedgerOptions{LockKey: "baton"})
	r := newRun("the-run-id", 5, "a")
	lost := p.LoseReply("the-run-id")
	if err := l.Claim(t.Context(), r); err == nil || errors.Is(err, job.ErrSlotTaken) || errors.Is(err, job.ErrNotLeader) {
		t.Fatalf("claim without a reply: %v", err)
	}
	<-lost
	if err := l.Claim(t.Context(), r); err != nil {
		t.Errorf("asked again: %v", err)
	}
	finish(t, l, ended(r, job.StateSucceeded, ""))
	if err := l.Claim(t.Context(), r); !errors.Is(err, job.ErrSlotTaken) {
		t.Errorf("asked again after its end: %v", err)
	}
}

// Flushes free memory if the memory is full, so they must be able to start.
func TestRunsStartAndEndWhileTheMemoryIsFull(t *testing.T) {
	g, l := ledgerRig(t)
	g.Do("CONFIG", "SET", "maxmemory", "1b", "maxmemory-policy", "noeviction")
	if _, err := g.Conn.Do("SET", "other", "x"); err == nil {
		t.Fatal("the memory is not full")
	}
	first := newRun("r1", 1, "a")
	claim(t, l, first)
	if _, err := l.Progress(t.Context(), first, Progress{Rows: 1}, time.Time{}); err != nil {
		t.Error(err)
	}
	finish(t, l, ended(first, job.StateSucceeded, ""))
	if got := stateOf(t, l, "users"); got.Last == nil || got.Last.State != job.StateSucceeded {
		t.Errorf("state: %+v", got)
	}
	if err := l.Miss(t.Context(), first.Term, missedAt(2, job.ReasonOverlap)); err != nil {
		t.Error(err)
	}
	order := Cancel{Job: "users", ID: "c1", By: "by alice"}
	if err := l.OrderCancel(t.Context(), order, time.Minute); err != nil {
		t.Error(err)
	}
	if answered, err := l.AnswerCancel(t.Context(), order, Cancelled{}); !answered || err != nil {
		t.Errorf("%v, %v", answered, err)
	}
	apart := NewLedger(g.store, LedgerOptions{LockKey: "other", ByEpoch: true})
	claim(t, apart, first)
	for _, name := range []string{"users", ""} {
		if _, err := l.Pause(t.Context(), name, "by alice: it is full", time.Time{}); err != nil {
			t.Error(err)
		}
		if _, err := l.Resume(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
}

func TestStateOfAJobFollowsItsRuns(t *testing.T) {
	_, l := ledgerRig(t)
	if diff := cmp.Diff(JobState{Job: "users"}, stateOf(t, l, "users")); diff != "" {
		t.Errorf("before the first run: %s", diff)
	}

	first := newRun("r1", 1, "a")
	before := time.Now().Add(-time.Millisecond)
	claim(t, l, first)
	got := stateOf(t, l, "users")
	if len(got.Running) != 1 || got.Running[0].Run != first || got.Running[0].State != job.StateRunning ||
		got.Running[0].Started.Before(before) {
		t.Errorf("running: %+v", got.Running)
	}
	if !got.LastSlot.Equal(first.Slot) || got.Last != nil {
		t.Errorf("while running: %+v", got)
	}

	finish(t, l, ended(first, job.StateSucceeded, ""))
	done := ended(first, job.StateSucceeded, "")
	want := JobState{Job: "users", Begun: first.Slot, LastSlot: first.Slot, Last: &done, LastSuccess: done.Finished, Fresh: done.Started}
	if diff := cmp.Diff(want, stateOf(t, l, "users")); diff != "" {
		t.Errorf("after a success: %s", diff)
	}

	for i, c := range []struct {
		state    job.State
		failures int64
	}{{job.StateFailed, 1}, {job.StateTimedOut, 2}, {job.StateCancelled, 2}, {job.StateLost, 3}, {job.StateSucceeded, 0}} {
		r := newRun(fmt.Sprint("x", i), 2+i, "a")
		claim(t, l, r)
		finish(t, l, ended(r, c.state, "no such table"))
		s := stateOf(t, l, "users")
		if s.ConsecutiveFailures != c.failures || s.Running != nil || s.Last.State != c.state || s.Last.Error != "no such table" {
			t.Errorf("after %s: %+v, last %+v", c.state, s, s.Last)
		}
		if c.state != job.StateSucceeded && !s.LastSuccess.Equal(done.Finished) {
			t.Errorf("after %s the last success is %s", c.state, s.LastSuccess)
		}
	}
}

func TestHistoryHoldsEveryRunOnceNewestFirst(t *testing.T) {
	g, l := ledgerRig(t)
	g.loadScripts()
	p := g.redis.Proxy()
	through := NewLedger(openStore(t, g.redis.URLThrough(p)), LedgerOptions{LockKey: "baton"})
	r := newRun("run-with-lost-end", 1, "a")
	claim(t, l, r)
	lost := p.LoseReply("run-with-lost-end")
	if err := through.Finish(t.Context(), ended(r, job.StateFailed, "x")); err == nil {
		t.Error("finished without a reply")
	}
	<-lost
	if err := through.Finish(t.Context(), ended(r, job.StateFailed, "x")); err != nil {
		t.Error(err)
	}
	want := []job.Record{ended(r, job.StateFailed, "x")}
	for minute := 2; minute < 5; minute++ {
		r := newRun(fmt.Sprint(minute), minute, "a")
		claim(t, l, r)
		finish(t, l, ended(r, job.StateSucceeded, ""))
		want = append([]job.Record{ended(r, job.StateSucceeded, "")}, want...)
	}
	for _, n := range []int{10, 2} {
		runs, err := l.Runs(t.Context(), "users", n)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[:min(n, len(want))], runs); diff != "" {
			t.Errorf("the last %d: %s", n, diff)
		}
	}
	if s := stateOf(t, l, "users"); s.ConsecutiveFailures != 0 {
		t.Errorf("%d failures", s.ConsecutiveFailures)
	}
	if runs, err := l.Runs(t.Context(), "unknown", 5); len(runs) != 0 || err != nil {
		t.Errorf("runs of a job without any: %v, %v", runs, err)
	}
}

func TestRunsThatGoOnTogetherEndEachForItself(t *testing.T) {
	g, l := ledgerRig(t)
	old, current := newRun("old", 1, "a"), newRun("new", 2, "b")
	claim(t, l, old)
	g.Do("SET", "baton", "b")
	claim(t, l, current)
	if s := stateOf(t, l, "users"); len(s.Running) != 2 || s.Running[0].ID != "old" || s.Running[1].ID != "new" {
		t.Errorf("running %+v", s.Running)
	}
	finish(t, l, ended(old, job.StateCancelled, "lease lost"))
	s := stateOf(t, l, "users")
	if len(s.Running) != 1 || s.Running[0].ID != "new" || s.Last.ID != "old" {
		t.Errorf("running %+v, last %+v", s.Running, s.Last)
	}
}

func TestRunThatWasLostAndTellsOfItsEndIsRecordedAnew(t *testing.T) {
	for _, c := range []struct {
		state    job.State
		failures int64
	}{{job.StateSucceeded, 0}, {job.StateFailed, 2}, {job.StateCancelled, 1}} {
		t.Run(string(c.state), func(t *testing.T) {
			g, l := ledgerRig(t)
			claim(t, l, newRun("r0", 0, "a"))
			finish(t, l, ended(newRun("r0", 0, "a"), job.StateFailed, "before"))
			r := newRun("r1", 1, "a")
			claim(t, l, r)
			g.Do("SET", "baton", "b")
			finish(t, l, ended(r, job.StateLost, "its leader has gone"))
			if s := stateOf(t, l, "users"); s.ConsecutiveFailures != 2 || s.Last.State != job.StateLost {
				t.Errorf("lost: %+v", s)
			}
			for range 2 {
				finish(t, l, ended(r, c.state, "after all"))
				finish(t, l, ended(r, job.StateLost, "its leader has gone"))
				s := stateOf(t, l, "users")
				if s.ConsecutiveFailures != c.failures || s.Last.State != c.state {
					t.Errorf("anew: %+v, last %+v", s, s.Last)
				}
			}
			runs, err := l.Runs(t.Context(), "users", 5)
			if err != nil || len(runs) != 2 || runs[0].ID != "r1" || runs[0].State != c.state {
				t.Errorf("history: %+v, %v", runs, err)
			}
		})
	}
}

func TestLateEndOfALostRunIsNotTheLastResultAfterAnother(t *testing.T) {
	_, l := ledgerRig(t)
	r, next := newRun("r1", 1, "a"), newRun("r2", 2, "a")
	claim(t, l, r)
	finish(t, l, ended(r, job.StateLost, "its leader has gone"))
	claim(t, l, next)
	finish(t, l, ended(next, job.StateSucceeded, ""))
	finish(t, l, ended(r, job.StateFailed, "late"))
	if s := stateOf(t, l, "users"); s.ConsecutiveFailures != 0 || s.Last.ID != "r2" {
		t.Errorf("%+v", s)
	}
	if runs, err := l.Runs(t.Context(), "users", 5); err != nil || len(runs) != 2 || runs[0].State != job.StateFailed {
		t.Errorf("history: %+v, %v", runs, err)
	}
}

func TestSlotAheadOfTheClockIsNotClaimed(t *testing.T) {
	_, l := ledgerRig(t)
	r := newRun("r1", 1, "a")
	r.Slot = time.Now().Add(2 * time.Minute)
	if err := l.Claim(t.Context(), r); !errors.Is(err, job.ErrAhead) || !strings.Contains(err.Error(), "time synchronisation") {
		t.Errorf("%v", err)
	}
	if s := stateOf(t, l, "users"); !s.LastSlot.IsZero() || s.Running != nil {
		t.Errorf("%+v", s)
	}
}

func TestLongErrorIsCutBetweenCharacters(t *testing.T) {
	_, l := ledgerRig(t)
	r := newRun("r", 1, "a")
	claim(t, l, r)
	finish(t, l, ended(r, job.StateFailed, "x"+strings.Repeat("ü", maxErrorText)))
	text := stateOf(t, l, "users").Last.Error
	if !utf8.ValidString(text) || len(text) > maxErrorText+3 || !strings.HasSuffix(text, "ü…") {
		t.Errorf("%d bytes that end in %q", len(text), text[len(text)-8:])
	}
}

func TestLedgerWithoutJobsAsksNothing(t *testing.T) {
	l := NewLedger(openStore(t, "redis://127.0.0.1:1/0"), LedgerOptions{LockKey: "baton"})
	if slots, err := l.ResumeStates(t.Context(), nil); len(slots) != 0 || err != nil {
		t.Errorf("%v, %v", slots, err)
	}
	if states, err := l.Jobs(t.Context(), nil); len(states) != 0 || err != nil {
		t.Errorf("%v, %v", states, err)
	}
}

func TestLedgerKeyOfAnotherTypeIsNamed(t *testing.T) {
	g, l := ledgerRig(t)
	g.Do("SET", "{baton}:job:users", "x")
	if _, err := l.ResumeStates(t.Context(), []string{"users"}); err == nil || !strings.Contains(err.Error(), "{baton}:job:users") {
		t.Errorf("standings: %v", err)
	}
	if _, err := l.Jobs(t.Context(), []string{"users"}); err == nil || !strings.Contains(err.Error(), "{baton}:job:users") {
		t.Errorf("jobs: %v", err)
	}
}

func TestALossThatIsNoFailureIsNotCounted(t *testing.T) {
	_, l := ledgerRig(t)
	for i, c := range []struct {
		state     job.State
		noFailure bool
		failures  int64
	}{{job.StateFailed, false, 1}, {job.StateLost, true, 1}, {job.StateLost, false, 2}} {
		run := newRun(fmt.Sprintf("r%d", i), i+1, "a")
		claim(t, l, run)
		rec := ended(run, c.state, "x")
		rec.NoFailure = c.noFailure
		finish(t, l, rec)
		if s := stateOf(t, l, "users"); s.ConsecutiveFailures != c.failures || s.Last.State != c.state {
			t.Errorf("%s: %d failures, want %d", run.ID, s.ConsecutiveFailures, c.failures)
		}
	}
}
