package locktest

import (
	"context"
	"errors"
	"time"

	"baton/internal/elector"
)

func win(t T, ctx context.Context, l elector.Lock, owner string) int64 {
	t.Helper()
	a := ask(t, ctx, l, elector.Candidate{Owner: owner})
	if a.Outcome != elector.Won {
		t.Fatalf("acquire by %s: got %+v, want it won", owner, a)
	}
	return a.Epoch
}

func ask(t T, ctx context.Context, l elector.Lock, c elector.Candidate) elector.Answer {
	t.Helper()
	a, err := l.Acquire(ctx, c)
	if err != nil {
		t.Fatalf("acquire by %s: %v", c.Owner, err)
	}
	return a
}

func release(t T, ctx context.Context, l elector.Lock, owner string, h elector.Handover) {
	t.Helper()
	if err := l.Release(ctx, owner, h); err != nil {
		t.Fatalf("release by %s: %v", owner, err)
	}
}

func wantHeld(t T, a elector.Answer, holder string, atMost time.Duration) {
	t.Helper()
	if a.Outcome != elector.Held || a.Holder != holder || a.Left <= 0 || a.Left > atMost {
		t.Fatalf("got %+v, want it held by %q for at most %v", a, holder, atMost)
	}
}

func aFreeLockIsWonOnce(t T, ctx context.Context, b Harness) {
	if e := win(t, ctx, b.A, "o1"); e <= 0 {
		t.Errorf("epoch %d is not positive", e)
	}
	wantHeld(t, ask(t, ctx, b.B, elector.Candidate{Owner: "o2"}), "a", b.TTL)
	wantHeld(t, ask(t, ctx, b.B, elector.Candidate{Owner: "o2", Polling: true}), "a", b.TTL)
}

func hearsHowLongFree(t T, ctx context.Context, b Harness) {
	const rounding = 5 * time.Millisecond
	// won requires that owner wins the lock. It also checks the reported time in which the lock had no leader, since the last release or
	// renewal. This time must be at least atLeast, and at most the time since began plus a tolerance: when the machine is busy, one of
	// several servers may get its request later than the others.
	won := func(l elector.Lock, owner string, began time.Time, atLeast time.Duration) {
		t.Helper()
		a := ask(t, ctx, l, elector.Candidate{Owner: owner})
		atMost := time.Since(began)
		late := atMost - atLeast
		if a.Outcome != elector.Won || a.FreeFor < atLeast-late-rounding || a.FreeFor > atMost+rounding {
			t.Fatalf("got %+v, want it won by %s after %v to %v in which it was free", a, owner, atLeast, atMost)
		}
	}
	if a := ask(t, ctx, b.A, elector.Candidate{Owner: "o1"}); a.FreeFor != 0 {
		t.Fatalf("the first term: got %+v: nothing is known of the time before it", a)
	}
	released := time.Now()
	release(t, ctx, b.A, "o1", elector.Handover{Event: string(elector.EventReleased)})
	b.Sleep(b.TTL / 4)
	won(b.B, "o2", released, b.TTL/4)
	b.Sleep(b.TTL / 2)
	renewed := time.Now()
	if _, err := b.B.Renew(ctx, "o2", 2); err != nil {
		t.Fatalf("renew: %v", err)
	}
	b.Sleep(3 * b.TTL / 2)
	won(b.C, "o3", renewed, 3*b.TTL/2) // the leader o2 was silent since its renewal
}

func sameOwnerWinsAgain(t T, ctx context.Context, b Harness) {
	first := win(t, ctx, b.A, "o1")
	a := ask(t, ctx, b.A, elector.Candidate{Owner: "o1"})
	if a.Outcome != elector.Won || a.Epoch != first {
		t.Fatalf("asked again: got %+v, want it won with epoch %d", a, first)
	}
}

func askingAgainRenews(t T, ctx context.Context, b Harness) {
	win(t, ctx, b.A, "o1")
	b.Sleep(b.TTL * 6 / 10)
	win(t, ctx, b.A, "o1")
	b.Sleep(b.TTL * 6 / 10)
	wantHeld(t, ask(t, ctx, b.B, elector.Candidate{Owner: "o2"}), "a", b.TTL)
}

func otherOwnerOfSameNode(t T, ctx context.Context, b Harness) {
	win(t, ctx, b.A, "o1")
	wantHeld(t, ask(t, ctx, b.A, elector.Candidate{Owner: "o2"}), "a", b.TTL)
}

func leaseExpires(t T, ctx context.Context, b Harness) {
	first := win(t, ctx, b.A, "o1")
	b.Sleep(b.TTL + b.TTL/10)
	if second := win(t, ctx, b.B, "o2"); second <= first {
		t.Errorf("epoch %d after %d: want it higher", second, first)
	}
}

func pollHearsOfNext(t T, ctx context.Context, b Harness) {
	win(t, ctx, b.A, "o1")
	wantHeld(t, ask(t, ctx, b.B, elector.Candidate{Owner: "o2"}), "a", b.TTL)
	b.Sleep(b.TTL + b.TTL/10)
	win(t, ctx, b.C, "o3")
	wantHeld(t, ask(t, ctx, b.B, elector.Candidate{Owner: "o2", Polling: true}), "c", b.TTL)
}

func renewKeeps(t T, ctx context.Context, b Harness) {
	win(t, ctx, b.A, "o1")
	for range 3 {
		b.Sleep(b.TTL * 6 / 10)
		order, err := b.A.Renew(ctx, "o1", 1)
		if err != nil || order != (elector.Order{}) {
			t.Fatalf("renew: %+v, %v", order, err)
		}
	}
	wantHeld(t, ask(t, ctx, b.B, elector.Candidate{Owner: "o2"}), "a", b.TTL)
}

func onlyTheOwner(t T, ctx context.Context, b Harness) {
	win(t, ctx, b.A, "o1")
	if _, err := b.B.Renew(ctx, "o2", 1); !errors.Is(err, elector.ErrLost) {
		t.Errorf("renew by another owner: %v, want ErrLost", err)
	}
	release(t, ctx, b.B, "o2", elector.Handover{Event: "released"})
	wantHeld(t, ask(t, ctx, b.B, elector.Candidate{Owner: "o2"}), "a", b.TTL)
	release(t, ctx, b.A, "o1", elector.Handover{Event: "released"})
	win(t, ctx, b.B, "o2")
}

func expiredIsNotRenewed(t T, ctx context.Context, b Harness) {
	win(t, ctx, b.A, "o1")
	b.Sleep(b.TTL + b.TTL/10)
	if _, err := b.A.Renew(ctx, "o1", 1); !errors.Is(err, elector.ErrLost) {
		t.Errorf("renew after the lease: %v, want ErrLost", err)
	}
}

func epochRises(t T, ctx context.Context, b Harness) {
	var last int64
	for i := range 5 {
		owner := string(rune('p' + i))
		e := win(t, ctx, b.A, owner)
		if e <= last {
			t.Fatalf("term %d: epoch %d after %d", i, e, last)
		}
		last = e
		release(t, ctx, b.A, owner, elector.Handover{Event: "released"})
	}
}

func epochAboveFloor(t T, ctx context.Context, b Harness) {
	const floor = 9_000_000_000_000
	win(t, ctx, b.A, "o0") // because a store without a term puts a candidate with a floor into quarantine
	release(t, ctx, b.A, "o0", elector.Handover{Event: "released"})
	a := ask(t, ctx, b.A, elector.Candidate{Owner: "o1", Floor: floor})
	if a.Outcome != elector.Won || a.Epoch <= floor {
		t.Fatalf("got %+v, want it won above %d", a, int64(floor))
	}
}

func epochSurvivesFlush(t T, ctx context.Context, b Harness) {
	last := win(t, ctx, b.A, "o1")
	for i := range 3 {
		b.Flush()
		b.Sleep(5 * time.Millisecond)
		e := win(t, ctx, b.B, string(rune('p'+i)))
		if e <= last {
			t.Fatalf("after the store was emptied: epoch %d after %d", e, last)
		}
		last = e
	}
}

func heldTellsEpoch(t T, ctx context.Context, b Harness) {
	epoch := win(t, ctx, b.A, "o1")
	for _, polling := range []bool{false, true} {
		if a := ask(t, ctx, b.B, elector.Candidate{Owner: "o2", Polling: polling}); a.Epoch != epoch {
			t.Errorf("polling %v: held with epoch %d, want %d", polling, a.Epoch, epoch)
		}
	}
}

// wantQuarantine asks for the lock as a node that knows the epoch floor. It fails the test unless the lock is in quarantine.
func wantQuarantine(t T, ctx context.Context, b Harness, l elector.Lock, owner string, floor int64) {
	t.Helper()
	a := ask(t, ctx, l, elector.Candidate{Owner: owner, Floor: floor})
	if a.Outcome != elector.Wait || a.Left <= 0 || a.Left > b.TTL || a.Reason == "" {
		t.Fatalf("a new owner after the store was emptied: %+v; want it to wait for at most %v", a, b.TTL)
	}
}

func emptiedStoreWaits(t T, ctx context.Context, b Harness) {
	epoch := win(t, ctx, b.A, "o1")
	b.Flush()
	wantQuarantine(t, ctx, b, b.B, "o2", epoch)
	b.Sleep(b.TTL / 2)
	// A candidate that knows no term must also wait, and cannot prolong the quarantine.
	wantQuarantine(t, ctx, b, b.C, "o3", 0)
	b.Sleep(b.TTL * 6 / 10)
	a := ask(t, ctx, b.B, elector.Candidate{Owner: "o2", Floor: epoch})
	if a.Outcome != elector.Won || a.Epoch <= epoch {
		t.Fatalf("after one lease: %+v; want it won above %d", a, epoch)
	}
}

func leaderPutsBack(t T, ctx context.Context, b Harness) {
	epoch := win(t, ctx, b.A, "o1")
	b.Flush()
	wantQuarantine(t, ctx, b, b.B, "o2", epoch)
	if _, err := b.A.Renew(ctx, "o1", epoch); err != nil {
		t.Fatalf("the leader's renewal after the store was emptied: %v", err)
	}
	wantHeld(t, ask(t, ctx, b.B, elector.Candidate{Owner: "o2", Floor: epoch}), "a", b.TTL)
	release(t, ctx, b.A, "o1", elector.Handover{Event: "released"})
	// The candidate need not wait for the leader, because the leader has renewed and then released the lock.
	if a := ask(t, ctx, b.B, elector.Candidate{Owner: "o2", Floor: epoch}); a.Outcome != elector.Won || a.Epoch <= epoch {
		t.Fatalf("after its release: %+v; want it won above %d", a, epoch)
	}
}

func earlierPutsNothingBack(t T, ctx context.Context, b Harness) {
	first := win(t, ctx, b.A, "o1")
	release(t, ctx, b.A, "o1", elector.Handover{Event: "released"})
	if _, err := b.A.Renew(ctx, "o1", first); !errors.Is(err, elector.ErrLost) {
		t.Errorf("renew after the release: %v, want ErrLost", err)
	}
	second := win(t, ctx, b.B, "o2")
	b.Flush()
	wantQuarantine(t, ctx, b, b.C, "o3", second)
	b.Sleep(b.TTL + b.TTL/10)
	if a := ask(t, ctx, b.C, elector.Candidate{Owner: "o3", Floor: second}); a.Outcome != elector.Won {
		t.Fatalf("after one lease: %+v", a)
	}
	release(t, ctx, b.C, "o3", elector.Handover{Event: "released"})
	if _, err := b.B.Renew(ctx, "o2", second); !errors.Is(err, elector.ErrLost) {
		t.Errorf("a late renewal, after the next term: %v, want ErrLost", err)
	}
}

func observerNeverWins(t T, ctx context.Context, b Harness) {
	if a := ask(t, ctx, b.A, elector.Candidate{Owner: "o1", Observer: true}); a.Outcome != elector.Wait || a.Code != elector.CodeLeft || a.Left <= 0 {
		t.Fatalf("an observer of a free lock: %+v; want it to wait", a)
	}
	win(t, ctx, b.B, "o2")
	wantHeld(t, ask(t, ctx, b.A, elector.Candidate{Owner: "o1", Observer: true}), "b", b.TTL)
}

func deferringTakesReserved(t T, ctx context.Context, b Harness) {
	polite := elector.Candidate{Owner: "o1", Deferring: true}
	if a := ask(t, ctx, b.A, polite); a.Outcome != elector.Wait || a.Code != elector.CodeLeft || a.Left <= 0 {
		t.Fatalf("a deferring candidate for a free lock: %+v; want it to wait", a)
	}
	win(t, ctx, b.B, "o2")
	wantHeld(t, ask(t, ctx, b.A, polite), "b", b.TTL)
	release(t, ctx, b.B, "o2", elector.Handover{Event: "stepped_down", To: "a"})
	won := ask(t, ctx, b.A, polite)
	if won.Outcome != elector.Won {
		t.Fatalf("the successor that is deferring: %+v; want it won", won)
	}
	if again := ask(t, ctx, b.A, polite); again.Outcome != elector.Won || again.Epoch != won.Epoch {
		t.Errorf("asked again: %+v; want it won with epoch %d", again, won.Epoch)
	}
	release(t, ctx, b.A, "o1", elector.Handover{Event: "stepped_down", To: "c"})
	if a := ask(t, ctx, b.A, polite); a.Outcome != elector.Wait || a.Reason != "reserved for c" {
		t.Errorf("during another's reservation: %+v", a)
	}
}

func raise(t T, ctx context.Context, b Harness) {
	first := win(t, ctx, b.A, "o1")
	raised, err := b.A.Raise(ctx, "o1", first+100)
	if err != nil || raised <= first+100 {
		t.Fatalf("raise: %d, %v; want above %d", raised, err, first+100)
	}
	if again := win(t, ctx, b.A, "o1"); again != raised {
		t.Errorf("asked again after the raise: epoch %d, want %d", again, raised)
	}
	if _, err := b.B.Raise(ctx, "o2", raised); !errors.Is(err, elector.ErrLost) {
		t.Errorf("raise by another owner: %v, want ErrLost", err)
	}
	release(t, ctx, b.A, "o1", elector.Handover{Event: "released"})
	if next := win(t, ctx, b.B, "o2"); next <= raised {
		t.Errorf("the next term has epoch %d, want above %d", next, raised)
	}
}

func handoverReserves(t T, ctx context.Context, b Harness) {
	win(t, ctx, b.A, "o1")
	release(t, ctx, b.A, "o1", elector.Handover{Event: "stepped_down", To: "b"})
	a := ask(t, ctx, b.A, elector.Candidate{Owner: "o2"})
	if a.Outcome != elector.Wait || a.Left <= 0 || a.Left > elector.ReserveFor || a.Reason != "reserved for b" {
		t.Fatalf("another node during the reservation: %+v", a)
	}
	win(t, ctx, b.B, "o3")
	release(t, ctx, b.B, "o3", elector.Handover{Event: "released"})
	win(t, ctx, b.A, "o2") // the reservation ended with its term
}

func orderReaches(t T, ctx context.Context, b Harness) {
	win(t, ctx, b.A, "o1")
	if err := b.StepDown("b", "upgrade"); err != nil {
		t.Fatalf("the order: %v", err)
	}
	want := elector.Order{StepDown: true, To: "b", Reason: "upgrade"}
	if order, err := b.A.Renew(ctx, "o1", 1); err != nil || order != want {
		t.Fatalf("renew: %+v, %v; want %+v", order, err, want)
	}
	release(t, ctx, b.A, "o1", elector.Handover{Event: "stepped_down"})
	win(t, ctx, b.B, "o2")
	if order, err := b.B.Renew(ctx, "o2", 1); err != nil || order.StepDown {
		t.Fatalf("the successor's renewal: %+v, %v; the order was not for it", order, err)
	}
}
