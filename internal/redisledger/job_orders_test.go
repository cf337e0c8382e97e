package redisledger

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"baton/internal/elector"
	"baton/internal/job"
	"baton/internal/redislock"
)

// manual returns a run that an operator has requested.
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
	g.Do("SET", "baton", "b", "PX", 60_000)
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
	if won.Load() == 0 { // all claims are repetitions for the same run
		t.Error("nobody got the run that was asked for")
	}
	finish(t, l, ended(manual("m1", "b"), job.StateSucceeded, ""))
	g.Do("SET", "baton", "c", "PX", 60_000)
	if err := l.Claim(t.Context(), manual("m1", "c")); !errors.Is(err, job.ErrSlotTaken) {
		t.Errorf("the next leader: %v", err)
	}
	state := stateOf(t, l, "users")
	if !state.LastSlot.Equal(slotZero.Add(5*time.Minute)) || state.Last.ID != "m1" {
		t.Errorf("state: %+v", state)
	}
}

func TestRequestWhoseReplyWasLostBeginsNoSecondRun(t *testing.T) {
	_, l := ledgerRig(t)
	none := func(when string) {
		t.Helper()
		ask(t, l, "m1")
		if o, err := l.Orders(t.Context(), nil); err != nil || len(o.Requests) != 0 {
			t.Errorf("%s: requested again: %+v, %v", when, o, err)
		}
	}
	ask(t, l, "m1")
	claim(t, l, manual("m1", "a"))
	none("while it runs")
	finish(t, l, ended(manual("m1", "a"), job.StateSucceeded, ""))
	none("after it")
}

func TestRequestIsGoodForAWhileOnly(t *testing.T) {
	_, l := ledgerRig(t)
	if err := l.Request(t.Context(), Request{Job: "users", ID: "m1", By: "by alice"}, -time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := l.Claim(t.Context(), manual("m1", "a")); !errors.Is(err, job.ErrSlotTaken) {
		t.Errorf("asked for too long ago: %v", err)
	}
	ask(t, l, "m2") // a run that has ended does not block another request
}

func TestRequestThatWaitsForAnotherRunIsKeptAlive(t *testing.T) {
	t.Parallel()
	_, l := ledgerRig(t)
	r := Request{Job: "users", ID: "m1", By: "by alice"}
	const life = 2 * time.Second // longer than the next step takes
	if err := l.Request(t.Context(), r, life); err != nil {
		t.Fatal(err)
	}
	if waits, err := l.Queue(t.Context(), r, time.Minute); !waits || err != nil {
		t.Errorf("queued: %v, %v", waits, err)
	}
	time.Sleep(life + 20*time.Millisecond)
	r.Queued = true
	if o, err := l.Orders(t.Context(), nil); err != nil || cmp.Diff([]Request{r}, o.Requests) != "" {
		t.Errorf("orders: %+v, %v", o, err)
	}
	claim(t, l, manual("m1", "a"))
	if waits, err := l.Queue(t.Context(), r, time.Minute); waits || err != nil {
		t.Errorf("queued after its start: %v, %v", waits, err)
	}
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

func TestProgressIsThatOfAnOpenRun(t *testing.T) {
	_, l := ledgerRig(t)
	claim(t, l, newRun("r1", 1, "a"))
	finish(t, l, ended(newRun("r1", 1, "a"), job.StateFailed, "database is away"))
	claim(t, l, newRun("r2", 2, "a"))
	if p := stateOf(t, l, "users").Running[0].Progress; p != nil {
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
	if diff := cmp.Diff(&told, state.Running[0].Progress); diff != "" || state.Running[0].Result != (job.Result{Rows: 7, Dead: 1}) {
		t.Errorf("running: %+v %s", state.Running, diff)
	}
	if state.ConsecutiveFailures != 1 || !state.LastSuccess.IsZero() {
		t.Errorf("a run that has finished nothing counts as a success: %+v", state)
	}
	progress("r2", slotZero)
	if state = stateOf(t, l, "users"); state.ConsecutiveFailures != 0 || !state.LastSuccess.Equal(slotZero) {
		t.Errorf("a run that goes on and on succeeds: %+v", state)
	}
	claim(t, l, newRun("r3", 3, "a"))
	if state = stateOf(t, l, "users"); len(state.Running) != 2 || state.Running[0].Progress == nil || state.Running[1].Progress != nil {
		t.Errorf("the next run has the progress of the other: %+v", state.Running)
	}
	finish(t, l, ended(newRun("r2", 2, "a"), job.StateCancelled, ""))
	if state = stateOf(t, l, "users"); len(state.Running) != 1 || state.Running[0].Progress != nil {
		t.Errorf("after its end: %+v", state.Running)
	}
}

// Several receivers may need the hints of one lock: the elector, and the code that carries out orders.
func TestAnOrderIsHintedToAllWhoListen(t *testing.T) {
	g, l := ledgerRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	first, second := make(chan elector.Hint, 100), make(chan elector.Hint, 100)
	go func() {
		defer close(done)
		redislock.WatchAll(ctx, g.store, redislock.Watched{LockKey: "baton", Hints: first},
			redislock.Watched{LockKey: "baton", Hints: second})
	}()
	hinted := func(want elector.Hint, why string) {
		t.Helper()
		for _, hints := range []chan elector.Hint{first, second} {
			select {
			case h := <-hints:
				if h != want {
					t.Fatalf("hint %v %s, want %v", h, why, want)
				}
			case <-time.After(time.Minute):
				t.Fatalf("nobody was told %s", why)
			}
		}
	}
	hinted(elector.HintSubscribed, "that hints come")
	ask(t, l, "m1")
	hinted(elector.HintControl, "of a request")
	if _, err := l.Pause(t.Context(), "users", "by alice", time.Time{}); err != nil {
		t.Fatal(err)
	}
	hinted(elector.HintControl, "of a pause")
	cancel()
	<-done
}
