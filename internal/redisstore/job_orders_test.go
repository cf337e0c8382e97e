package redisstore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"baton/internal/job"
)

// manual is a run that was asked for.
func manual(id, owner string) job.Run {
	r := newRun(id, 0, owner)
	r.Trigger, r.Slot = job.TriggerManual, time.Now().Truncate(time.Millisecond)
	return r
}

func ask(t *testing.T, l *Ledger, id string) Request {
	t.Helper()
	r := Request{Job: "users", ID: id, By: "by alice: a test"}
	if err := l.Request(t.Context(), r, time.Minute); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRequestIsCarriedOutOnceOverAFailover(t *testing.T) {
	g, l := ledgerRig(t)
	claim(t, l, newRun("r1", 5, "a"))
	finish(t, l, ended(newRun("r1", 5, "a"), job.StateSucceeded, ""))
	if err := l.Claim(t.Context(), manual("m1", "a")); !errors.Is(err, job.ErrSlotTaken) {
		t.Errorf("what nobody asked for: %v", err)
	}
	ask(t, l, "m1")
	g.do("SET", "baton", "b", "PX", 60_000)
	if err := l.Claim(t.Context(), manual("m1", "a")); !errors.Is(err, job.ErrNotLeader) {
		t.Errorf("the leader that was: %v", err)
	}
	var won atomic.Int64
	var racers sync.WaitGroup
	for range 8 {
		racers.Go(func() {
			r := manual("m1", "b")
			if err := l.Claim(t.Context(), r); err == nil {
				won.Add(1)
			}
		})
	}
	racers.Wait()
	if won.Load() == 0 { // all of them are the same run, that asks again
		t.Error("nobody got the run that was asked for")
	}
	finish(t, l, ended(manual("m1", "b"), job.StateSucceeded, ""))
	g.do("SET", "baton", "c", "PX", 60_000)
	if err := l.Claim(t.Context(), manual("m1", "c")); !errors.Is(err, job.ErrSlotTaken) {
		t.Errorf("the next leader: %v", err)
	}
	state := stateOf(t, l, "users")
	if !state.LastSlot.Equal(slotZero.Add(5*time.Minute)) || state.Last.ID != "m1" {
		t.Errorf("state: %+v", state)
	}
}

func TestRequestIsGoodForAWhileOnly(t *testing.T) {
	_, l := ledgerRig(t)
	if err := l.Request(t.Context(), Request{Job: "users", ID: "m1", By: "by alice"}, -time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := l.Claim(t.Context(), manual("m1", "a")); !errors.Is(err, job.ErrSlotTaken) {
		t.Errorf("asked for too long ago: %v", err)
	}
	ask(t, l, "m2") // one that has ended is in nobody's way
}

func TestRequestIsOneAtATimeAndCanBeRefusedOrWithdrawn(t *testing.T) {
	_, l := ledgerRig(t)
	r := ask(t, l, "m1")
	ask(t, l, "m1") // whose reply was lost
	err := l.Request(t.Context(), Request{Job: "users", ID: "m2", By: "by bob"}, time.Minute)
	if !errors.Is(err, ErrAsked) || !strings.Contains(err.Error(), "by alice") {
		t.Errorf("a second one: %v", err)
	}
	o, err := l.Orders(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Request{r}, o.Requests); diff != "" {
		t.Error(diff)
	}
	if ended, err := l.Refuse(t.Context(), r, "running already"); !ended || err != nil {
		t.Errorf("refuse: %v, %v", ended, err)
	}
	if got := stateOf(t, l, "users").Refused; got != (Refusal{"m1", "running already"}) {
		t.Errorf("refused: %+v", got)
	}
	if ended, err := l.Withdraw(t.Context(), r); ended || err != nil {
		t.Errorf("withdraw what was refused: %v, %v", ended, err)
	}
	r = ask(t, l, "m3")
	if ended, err := l.Withdraw(t.Context(), r); !ended || err != nil {
		t.Errorf("withdraw: %v, %v", ended, err)
	}
	if err := l.Claim(t.Context(), manual("m3", "a")); !errors.Is(err, job.ErrSlotTaken) {
		t.Errorf("claim what was withdrawn: %v", err)
	}
	r = ask(t, l, "m4")
	claim(t, l, manual("m4", "a"))
	claim(t, l, manual("m4", "a")) // whose reply was lost
	if ended, err := l.Withdraw(t.Context(), r); ended || err != nil {
		t.Errorf("withdraw what has begun: %v, %v", ended, err)
	}
}

func TestPausedJobIsGrantedNothingWhoeverLeads(t *testing.T) {
	g, l := ledgerRig(t)
	claim(t, l, newRun("r1", 1, "a"))
	before, err := l.Pause(t.Context(), "users", "by alice: upgrade")
	if before != nil || err != nil {
		t.Fatalf("before: %v, %v", before, err)
	}
	claim(t, l, newRun("r1", 1, "a")) // what runs may ask again
	for i, owner := range []string{"a", "b"} {
		g.do("SET", "baton", owner, "PX", 60_000)
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
	before, err = l.Pause(t.Context(), "users", "by bob")
	if err != nil || before == nil || before.Reason != "by alice: upgrade" || time.Since(before.At) > time.Minute {
		t.Errorf("before: %v, %v", before, err)
	}
	if p := stateOf(t, l, "users").Paused; p == nil || p.Reason != "by bob" || !p.At.Equal(before.At) {
		t.Errorf("paused: %v", p)
	}
	if o, err := l.Orders(t.Context(), []string{"users", "other"}); err != nil || cmp.Diff(map[string]string{"users": "by bob", "other": ""}, o.Paused) != "" {
		t.Errorf("orders: %v, %v", o, err)
	}
	for range 2 {
		if was, err := l.Resume(t.Context(), "users"); err != nil || (was != nil) != (before != nil) {
			t.Errorf("resume: %v, %v", was, err)
		}
		before = nil
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

func TestProgressIsThatOfTheRunningRunOnly(t *testing.T) {
	_, l := ledgerRig(t)
	claim(t, l, newRun("r1", 1, "a"))
	finish(t, l, ended(newRun("r1", 1, "a"), job.StateFailed, "database is away"))
	claim(t, l, newRun("r2", 2, "a"))
	if p := stateOf(t, l, "users").Progress; p != nil {
		t.Errorf("before it has told any: %v", p)
	}
	told := Progress{Rows: 7, Dead: 1, Batches: 2, Backlog: 100}
	progress := func(id string, fresh time.Time) {
		t.Helper()
		ours, err := l.Progress(t.Context(), newRun(id, 2, "a"), told, fresh)
		if err != nil || ours != (id == "r2") {
			t.Errorf("run %s: %v, %v", id, ours, err)
		}
	}
	progress("r1", slotZero)
	progress("r2", time.Time{})
	state := stateOf(t, l, "users")
	if diff := cmp.Diff(&told, state.Progress); diff != "" || state.Running.Result != (job.Result{Rows: 7, Dead: 1}) {
		t.Errorf("running: %+v %s", state.Running, diff)
	}
	if state.ConsecutiveFailures != 1 || !state.LastSuccess.IsZero() {
		t.Errorf("a run that has finished nothing counts as a success: %+v", state)
	}
	progress("r2", slotZero)
	if state = stateOf(t, l, "users"); state.ConsecutiveFailures != 0 || !state.LastSuccess.Equal(slotZero) {
		t.Errorf("a run that goes on and on succeeds: %+v", state)
	}
	claim(t, l, newRun("r3", 3, "a")) // the last one never told how it ended
	if state = stateOf(t, l, "users"); state.Progress != nil || state.Running.Result.Rows != 0 {
		t.Errorf("the next run begins with the progress of the last one: %+v", state.Running)
	}
	if _, err := l.Progress(t.Context(), newRun("r3", 3, "a"), told, time.Time{}); err != nil {
		t.Fatal(err)
	}
	finish(t, l, ended(newRun("r3", 3, "a"), job.StateCancelled, ""))
	if p := stateOf(t, l, "users").Progress; p != nil {
		t.Errorf("after its end: %v", p)
	}
}

func TestWatchLooksAtOnceWhenAnOrderIsGiven(t *testing.T) {
	_, l := ledgerRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	looks := make(chan struct{}, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Watch(ctx, time.Hour, func() { looks <- struct{}{} })
	}()
	look := func(why string) {
		t.Helper()
		select {
		case <-looks:
		case <-time.After(5 * time.Second):
			t.Fatalf("nobody looked %s", why)
		}
	}
	look("at the beginning")
	look("when hints come")
	ask(t, l, "m1")
	look("for a request")
	if _, err := l.Pause(t.Context(), "users", "by alice"); err != nil {
		t.Fatal(err)
	}
	look("for a pause")
	cancel()
	<-done
}
