package redislock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// A renewal may arrive long after it was sent, if the network has delayed its bytes. If Redis has lost its data in the meantime, the late
// renewal must not restore the forgotten term, because another node leads by now.
func TestALateRenewalPutsNoEarlierTermBack(t *testing.T) {
	t.Parallel()
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			proxy := testsupport.NewProxy(t, r.Addr())
			behind := redistest.Open(t, redisconn.Options{URL: r.URLThrough(proxy), ClientName: "baton-test"})
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
			itsConnection := clientIDs(t, r) // no other lock has sent a request yet
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
			awaitServed(t, r, itsConnection)

			if _, err := b.Renew(t.Context(), "o2", second.Epoch); err != nil {
				t.Fatalf("the leader's renewal: %v", err)
			}
			if held := ask(c, "o3"); held.Outcome != elector.Held || held.Holder != "b" || held.Epoch != second.Epoch {
				t.Errorf("another node: %+v; want it held by b under epoch %d", held, second.Epoch)
			}
		})
	}
}

// clientIDs returns the ids of the locks' connections.
func clientIDs(t *testing.T, r *testsupport.Redis) []string {
	t.Helper()
	var ids []string
	for line := range strings.Lines(r.Client(t).Str("CLIENT", "LIST")) {
		if strings.Contains(line, " name=baton-test ") {
			ids = append(ids, strings.Fields(line)[0])
		}
	}
	return ids
}

// awaitServed waits until Redis has closed connections that their clients have dropped. Redis has then executed all commands of these
// connections.
func awaitServed(t *testing.T, r *testsupport.Redis, connections []string) {
	t.Helper()
	if len(connections) != 1 {
		t.Fatalf("%q; want one connection", connections)
	}
	testsupport.Await(t, "the late request to be carried out", func() bool { return !slices.Contains(clientIDs(t, r), connections[0]) })
}

// A Redis that hung executes old requests when it continues. By then a lease may have ended that could not have ended when the node sent
// its request. Such a lock has not vanished.
func TestALateCandidateDoesNotTakeAnEndedLeaseForAVanishedOne(t *testing.T) {
	t.Parallel()
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			o.Key, o.TTL = "baton", shortLease
			node := func(id string) *redislock.Lock {
				o.NodeID = id
				return designedLock(t, open(t, r), o)
			}
			a, b, c := node("a"), node("b"), node("c")
			ask := func(l *redislock.Lock, owner string) (elector.Answer, error) {
				return l.Acquire(t.Context(), elector.Candidate{Owner: owner})
			}
			if won, err := ask(a, "o1"); err != nil || won.Outcome != elector.Won {
				t.Fatalf("%+v, %v", won, err)
			}
			others := clientIDs(t, r)
			if held, err := ask(b, "o2"); err != nil || held.Outcome != elector.Held {
				t.Fatalf("%+v, %v", held, err)
			}
			itsConnection := slices.DeleteFunc(clientIDs(t, r), func(id string) bool { return slices.Contains(others, id) })
			r.Freeze()
			attempt, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if _, err := b.Acquire(attempt, elector.Candidate{Owner: "o2"}); err == nil {
				t.Fatal("a frozen Redis answers")
			}
			time.Sleep(o.TTL * 3 / 2)
			r.Thaw()
			awaitServed(t, r, itsConnection)
			next, err := ask(c, "o3")
			if err != nil || next.Outcome == elector.Wait {
				t.Errorf("%+v, %v; want nobody to wait for a lease that has ended", next, err)
			}
		})
	}
}
