package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// A renewal may arrive long after it was sent, when the network lets its bytes
// through at last. Where Redis has lost its data in between, it must not be taken
// for that of the leader whom Redis has forgotten: the leader is another by now.
func TestALateRenewalPutsNoEarlierTermBack(t *testing.T) {
	t.Parallel()
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			proxy := testsupport.NewProxy(t, r.Addr())
			behind := redistest.Open(t, redisconn.Options{URL: r.URLThrough(proxy)})
			o.Key, o.TTL = "baton", 5*time.Second
			node := func(s *redisconn.Store, id string) *redislock.Lock {
				o.NodeID = id
				return designedLock(t, s, o)
			}
			a, a2, b, c := node(behind, "a"), node(open(t, r), "a"), node(open(t, r), "b"), node(open(t, r), "c")
			ask := func(l *redislock.Lock, owner string) elector.Answer {
				t.Helper()
				answer, err := l.Acquire(t.Context(), elector.Candidate{Owner: owner})
				if err != nil {
					t.Fatalf("acquire by %s: %v", owner, err)
				}
				return answer
			}
			first := ask(a, "o1")
			if _, err := a.Renew(t.Context(), "o1", first.Epoch); err != nil {
				t.Fatal(err)
			}
			proxy.HangRequests()
			attempt, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := a.Renew(attempt, "o1", first.Epoch); err == nil || errors.Is(err, elector.ErrLost) {
				t.Fatalf("a renewal that has not arrived: %v", err)
			}
			if err := a2.Release(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil {
				t.Fatal(err)
			}
			second := ask(b, "o2")
			r.Client(t).Do("FLUSHALL")
			proxy.Unhang()
			time.Sleep(200 * time.Millisecond) // for the renewal to arrive

			if _, err := b.Renew(t.Context(), "o2", second.Epoch); err != nil {
				t.Fatalf("the leader's renewal: %v", err)
			}
			if held := ask(c, "o3"); held.Outcome != elector.Held || held.Holder != "b" || held.Epoch != second.Epoch {
				t.Errorf("another node: %+v; want it held by b under epoch %d", held, second.Epoch)
			}
		})
	}
}

// A Redis that hung carries out what it was asked before. By then leases have run out
// that the asking node knew could not: their locks have not vanished.
func TestALateCandidateDoesNotTakeAnEndedLeaseForAVanishedOne(t *testing.T) {
	t.Parallel()
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			o.Key, o.TTL = "baton", testsupport.Paced(time.Second)
			node := func(id string) *redislock.Lock {
				o.NodeID = id
				return designedLock(t, open(t, r), o)
			}
			a, b, c := node("a"), node("b"), node("c")
			ask := func(l *redislock.Lock, owner string) (elector.Answer, error) {
				ctx, cancel := context.WithTimeout(t.Context(), o.TTL/5)
				defer cancel()
				return l.Acquire(ctx, elector.Candidate{Owner: owner})
			}
			if won, err := ask(a, "o1"); err != nil || won.Outcome != elector.Won {
				t.Fatalf("%+v, %v", won, err)
			}
			if held, err := ask(b, "o2"); err != nil || held.Outcome != elector.Held {
				t.Fatalf("%+v, %v", held, err)
			}
			r.Freeze()
			if _, err := ask(b, "o2"); err == nil {
				t.Fatal("a frozen Redis answers")
			}
			time.Sleep(o.TTL * 3 / 2)
			r.Thaw()
			time.Sleep(50 * time.Millisecond) // for the late request
			next, err := ask(c, "o3")
			if err != nil || next.Outcome == elector.Wait {
				t.Errorf("%+v, %v; want nobody to wait for a lease that has ended", next, err)
			}
		})
	}
}
