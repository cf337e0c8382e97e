package redisledger

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"baton/internal/job"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
)

func TestPausedJobIsGrantedNothingWhoeverLeads(t *testing.T) {
	g, l := ledgerRig(t)
	claim(t, l, newRun("r1", 1, "a"))
	before, err := l.Pause(t.Context(), "users", "by alice: upgrade", time.Time{})
	if before != nil || err != nil {
		t.Fatalf("before: %v, %v", before, err)
	}
	claim(t, l, newRun("r1", 1, "a")) // a run in progress may repeat its claim
	for i, owner := range []string{"a", "b"} {
		g.Do("SET", "baton", owner, "PX", 60_000)
		for range 2 { // a reply was lost
			err := l.Claim(t.Context(), newRun("next", 2+i, owner))
			if !errors.Is(err, job.ErrPaused) || !strings.HasSuffix(err.Error(), "paused by alice: upgrade") {
				t.Errorf("slot for %s: %v", owner, err)
			}
		}
	}
	if err := l.Request(t.Context(), Request{Job: "users", ID: "m1"}, time.Minute); !errors.Is(err, job.ErrPaused) {
		t.Errorf("request: %v", err)
	}
	before, err = l.Pause(t.Context(), "users", "by bob", time.Time{})
	if err != nil || before == nil || before.Reason != "by alice: upgrade" || time.Since(before.At) > time.Minute {
		t.Errorf("before: %v, %v", before, err)
	}
	if p := stateOf(t, l, "users").Paused; p == nil || p.Reason != "by bob" || !p.At.Equal(before.At) {
		t.Errorf("paused: %v", p)
	}
	if o, err := l.Orders(t.Context(), []string{"users", "other"}); err != nil ||
		cmp.Diff(map[string]string{"users": "by bob", "other": ""}, o.Paused) != "" {
		t.Errorf("orders: %v, %v", o, err)
	}
	for range 2 {
		if was, err := l.Resume(t.Context(), "users"); err != nil || (was != nil) != (before != nil) {
			t.Errorf("resume: %v, %v", was, err)
		}
		before = nil
	}
	if s := stateOf(t, l, "users"); !s.LastSlot.Equal(newRun("", 1, "").Slot) {
		t.Errorf("the last slot is %v: one that nobody has recorded would be forgotten", s.LastSlot)
	}
	if err := l.Miss(t.Context(), newRun("", 0, "b").Term, missedAt(3, job.ReasonPaused)); err != nil {
		t.Error(err)
	}
	if err := l.Claim(t.Context(), newRun("late", 3, "b")); !errors.Is(err, job.ErrSlotTaken) {
		t.Errorf("a slot that the pause has refused: %v", err)
	}
	claim(t, l, newRun("r4", 4, "b"))
}

func TestRunThatPausesItsJobSaysWhyUnlessItIsNotTheLatest(t *testing.T) {
	_, l := ledgerRig(t)
	claim(t, l, newRun("r1", 1, "a"))
	claim(t, l, newRun("r2", 2, "a"))
	rec := ended(newRun("r1", 1, "a"), job.StateFailed, "a gap")
	rec.Pauses = true
	finish(t, l, rec)
	if p := stateOf(t, l, "users").Paused; p != nil {
		t.Errorf("paused by a run of long ago: %v", p)
	}
	rec.Run = newRun("r2", 2, "a")
	finish(t, l, rec)
	p := stateOf(t, l, "users").Paused
	if p == nil || p.Reason != "by baton: a gap" || !p.At.Equal(rec.Finished) {
		t.Errorf("paused: %v", p)
	}
}

func TestPauseThatAnOperatorGaveAnEndHasNoneAfterARunThatPauses(t *testing.T) {
	_, l := ledgerRig(t)
	claim(t, l, newRun("r1", 1, "a"))
	pauseJob(t, l, "users", "by alice", time.Now().Add(time.Hour))
	rec := ended(newRun("r1", 1, "a"), job.StateFailed, "a gap")
	rec.Pauses = true
	finish(t, l, rec)
	if p := stateOf(t, l, "users").Paused; p == nil || p.Reason != "by baton: a gap" || !p.Until.IsZero() {
		t.Errorf("paused: %+v", p)
	}
}

func pauseJob(t *testing.T, l *Ledger, name, reason string, until time.Time) (before *JobPause) {
	t.Helper()
	before, err := l.Pause(t.Context(), name, reason, until)
	if err != nil {
		t.Fatal(err)
	}
	return before
}

func TestPauseEndsByItself(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"users", ""} {
		t.Run("of "+name, func(t *testing.T) {
			g, l := ledgerRig(t)
			until := time.Now().Add(time.Hour).Truncate(time.Millisecond)
			pauseJob(t, l, name, "by alice", until)
			if p := stateOf(t, l, "users").Paused; p == nil || p.Reason != "by alice" || !p.Until.Equal(until) || p.All != (name == "") ||
				time.Since(p.At) > time.Minute {
				t.Errorf("paused: %+v", p)
			}
			if err := l.Claim(t.Context(), newRun("r1", 1, "a")); !errors.Is(err, job.ErrPaused) ||
				!strings.HasSuffix(err.Error(), "by alice") {
				t.Errorf("before its end: %v", err)
			}
			if err := l.Request(t.Context(), Request{Job: "users", ID: "m1"}, time.Minute); !errors.Is(err, job.ErrPaused) {
				t.Errorf("request: %v", err)
			}
			if o, err := l.Orders(t.Context(), []string{"users"}); err != nil || o.Paused["users"] != "by alice" {
				t.Errorf("orders: %+v, %v", o, err)
			}
			until = time.Now().Add(100 * time.Millisecond)
			pauseJob(t, l, name, "by alice", until)
			time.Sleep(time.Until(until) + 20*time.Millisecond)
			if p := stateOf(t, l, "users").Paused; p != nil {
				t.Errorf("after its end: %+v", p)
			}
			if o, err := l.Orders(t.Context(), []string{"users"}); err != nil || o.Paused["users"] != "" {
				t.Errorf("orders: %+v, %v", o, err)
			}
			claim(t, l, newRun("r2", 2, "a"))
			if n := g.Num("HEXISTS", "{baton}:job:users", "paused_reason") +
				g.Num("HEXISTS", "{baton}:control", "jobs_paused_reason"); n != 0 {
				t.Error("the pause is still there")
			}
			pauseJob(t, l, name, "by alice", time.Now())
			if before := pauseJob(t, l, name, "by bob", time.Time{}); before != nil {
				t.Errorf("a pause that has ended: %+v", before)
			}
			ask := Request{Job: "users", ID: "m1"}
			pauseJob(t, l, name, "by alice", time.Now())
			if err := l.Request(t.Context(), ask, time.Minute); err != nil {
				t.Errorf("request: %v", err)
			}
		})
	}
}

func TestPauseOfAllAndOfOneAreTwo(t *testing.T) {
	_, l := ledgerRig(t)
	e := redislock.NewElection(l.store, "baton", script.String)
	// The pause of the election does not concern the pauses of jobs.
	if _, err := e.Pause(t.Context(), "by carol: no node leads"); err != nil {
		t.Fatal(err)
	}
	claim(t, l, newRun("r1", 1, "a"))
	soon, late := time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	pauseJob(t, l, "", "by alice: all", late)
	other := newRun("o1", 1, "a")
	other.Job = "mails"
	if err := l.Claim(t.Context(), other); !errors.Is(err, job.ErrPaused) {
		t.Errorf("another job: %v", err)
	}
	for _, c := range []struct {
		until time.Time
		want  string
	}{{soon, "by alice: all"}, {late.Add(time.Hour), "by bob"}, {time.Time{}, "by bob"}} {
		pauseJob(t, l, "users", "by bob", c.until)
		if p := stateOf(t, l, "users").Paused; p == nil || p.Reason != c.want || p.All != (c.want != "by bob") {
			t.Errorf("shown is not what lasts longer: %+v, want %s", p, c.want)
		}
	}
	if was, err := l.Resume(t.Context(), ""); err != nil || was == nil || !was.All || was.Reason != "by alice: all" {
		t.Errorf("resume: %+v, %v", was, err)
	}
	claim(t, l, other2(other))
	if err := l.Claim(t.Context(), newRun("r2", 2, "a")); !errors.Is(err, job.ErrPaused) {
		t.Errorf("the job's own is over with that of all: %v", err)
	}
	if was, err := l.Resume(t.Context(), ""); err != nil || was != nil {
		t.Errorf("resume again: %+v, %v", was, err)
	}
	if p, err := e.State(t.Context(), 0); err != nil || p.Paused == nil {
		t.Errorf("the election's pause: %+v, %v", p.Paused, err)
	}
}

// other2 returns the run of the next slot.
func other2(r job.Run) job.Run {
	r.ID, r.Slot = r.ID+"+", r.Slot.Add(time.Minute)
	return r
}
