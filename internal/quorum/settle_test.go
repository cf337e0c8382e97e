package quorum_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport/fakelock"
)

// Master 2 never knew the leader, master 1 has forgotten the leader, and the answer of master 0 does not arrive. A node that knows of
// no term must not conclude from two masters without a term that there never was a term.
func TestANewNodeIsNotWonOverByMastersThatHaveForgotten(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		leader := b.lock(t, "l", timing.TTL, func(master int, _ string) fakelock.Fault {
			return fakelock.Fault{LoseRequest: master == 2}
		})
		won, err := leader.Acquire(b.ctx, elector.Candidate{Owner: "l1", Floor: 0})
		for err == nil && won.Outcome != elector.Won {
			time.Sleep(won.Left)
			won, err = leader.Acquire(b.ctx, elector.Candidate{Owner: "l1", Floor: 0})
		}
		if err != nil {
			t.Fatal(err)
		}
		sent := time.Now()
		b.masters[1].Restart(false)
		b.links.set(always(fakelock.Fault{LoseReply: true}), 0)
		for time.Since(sent) < timing.TTL-timing.Margin {
			a, err := b.Acquire(b.ctx, elector.Candidate{Owner: "o1"})
			if err == nil && a.Outcome == elector.Won {
				t.Fatalf("won %v after the leader did", time.Since(sent))
			}
			time.Sleep(time.Second)
		}
	})
}

func TestABrandNewLockIsWonAtOnceIfAllMastersAnswer(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		if took := elapsed(func() { b.win("o1") }); took > perNode {
			t.Errorf("won after %v", took)
		}
	})
	on(t, 3, func(t *testing.T, b *bench) {
		b.links.set(hung, 0)
		a := b.ask(elector.Candidate{Owner: "o1"})
		if a.Outcome != elector.Wait || a.Left > timing.TTL {
			t.Fatalf("one cannot be asked: %+v, want to wait for a lease", a)
		}
		time.Sleep(a.Left)
		b.win("o1")
	})
}

// A process that ends after its release takes with it the requests that are still on their way to a slow master.
func TestSettlingWaitsForTheSlowestMaster(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		b.win("o1")
		b.links.set(always(fakelock.Fault{Before: 2 * perNode / 3}), 2)
		go func() { _, _ = b.Renew(t.Context(), "o1", 1) }() // the release waits behind this renewal
		time.Sleep(time.Millisecond)
		if err := b.Release(t.Context(), "o1", elector.Handover{}); err != nil {
			t.Fatal(err)
		}
		if b.held("o1") == 0 {
			t.Fatal("the slow master was waited for: nothing to test")
		}
		b.Settle(t.Context())
		if n := b.held("o1"); n != 0 {
			t.Errorf("%d masters are still held", n)
		}
		b.links.set(always(fakelock.Fault{Deaf: true, Before: time.Minute}), 2)
		_ = b.Release(t.Context(), "o1", elector.Handover{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if took := elapsed(func() { b.Settle(ctx) }); took != time.Second {
			t.Errorf("settling took %v, want what it was given", took)
		}
		time.Sleep(2 * time.Minute)
	})
}

// A candidate that knows of no term must have time to ask for the lock although one master hangs, because an attempt may have less time
// than the timeout of a request to one master.
func TestAHungMasterKeepsNoNewcomerFromWinning(t *testing.T) {
	most := int(2 * timing.TTL / (time.Second + perNode)) // the number of attempts in two leases
	for _, knows := range []string{"a lock that never was", "a lock that was"} {
		t.Run(knows, func(t *testing.T) {
			on(t, 3, func(t *testing.T, b *bench) {
				if knows == "a lock that was" {
					b.win("o0")
					_ = b.Release(b.ctx, "o0", elector.Handover{})
				}
				time.Sleep(time.Second)
				b.links.set(always(fakelock.Fault{Deaf: true, Before: 10 * time.Minute}), 1)
				for try := 0; ; try++ {
					ctx, cancel := context.WithTimeout(b.ctx, perNode)
					a, err := b.Acquire(ctx, elector.Candidate{Owner: "o1"})
					cancel()
					if err == nil && a.Outcome == elector.Won {
						t.Logf("won after %d attempts in vain", try)
						break
					}
					if try == most {
						t.Fatalf("nothing is won in %d attempts: %+v, %v", most, a, err)
					}
					time.Sleep(time.Second)
				}
				b.links.set(nil, 1)
				time.Sleep(10 * time.Minute)
			})
		})
	}
}

// A newcomer looks before it asks for the lock. This counts as one attempt, after which the newcomer pauses as long as a rival that
// already knows the lock.
func TestANewcomerPausesNoLongerThanItsRivals(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		for i := range 3 {
			_, _ = b.masters[i].Node(string(rune('x'+i)), nil).Acquire(b.ctx, elector.Candidate{Owner: fmt.Sprint(i)})
		}
		for i := range 5 {
			limit := 5 * time.Millisecond << (i + 1)
			if a := b.ask(elector.Candidate{Owner: "o1"}); a.Outcome != elector.Wait || a.Left > limit {
				t.Errorf("attempt %d: %+v, want a pause of at most %v", i+1, a, limit)
			}
		}
	})
}
