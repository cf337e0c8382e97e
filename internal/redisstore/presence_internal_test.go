package redisstore

import (
	"context"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport"
)

// A standby that only looks, and a leader that only renews, write once in a while
// that they are there. The standby then notices a term of which it got no hint.
func TestANodeThatOnlyPollsOrRenewsTellsThatItIsThere(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	store, err := Open(Options{URL: r.URL(), Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // the test has ended
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, withoutScripts := range []bool{false, true} {
		key := map[bool]string{false: "lua", true: "setnx"}[withoutScripts]
		node := func(id string) *Lock {
			l, err := NewLock(store, LockOptions{Key: key, NodeID: id, TTL: 10 * time.Second, WithoutScripts: withoutScripts, Presence: Presence{Priority: 7}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.Close)
			return l
		}
		leader, standby := node("leader"), node("standby")
		ask := func(l *Lock, owner string, polling bool) elector.Answer {
			t.Helper()
			a, err := l.Acquire(ctx, elector.Candidate{Owner: owner, Polling: polling})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		election := NewElection(store, key, String)
		told := func(id string) Node {
			t.Helper()
			p, err := election.Picture(ctx, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range p.Nodes {
				if n.ID == id {
					return n
				}
			}
			return Node{}
		}
		epoch := ask(leader, "a", false).Epoch
		ask(standby, "b", false)
		for id, again := range map[string]func(){
			"leader": func() {
				if _, err := leader.Renew(ctx, "a", epoch); err != nil {
					t.Fatal(err)
				}
			},
			"standby": func() { ask(standby, "b", true) },
		} {
			again() // a first renewal on a connection tells, too
			before := told(id)
			time.Sleep(5 * time.Millisecond)
			if again(); told(id) != before {
				t.Errorf("%s: %s tells all the time", key, id)
			}
			map[string]*Lock{"leader": leader, "standby": standby}[id].told.Store(0)
			if again(); told(id).SeenMS <= before.SeenMS || told(id).State != before.State {
				t.Errorf("%s: %s told %+v, then %+v", key, id, before, told(id))
			}
		}

		if err := leader.Release(ctx, "a", elector.Handover{Event: "released"}); err != nil {
			t.Fatal(err)
		}
		next := ask(node("next"), "c", false).Epoch
		if a := ask(standby, "b", true); a.Holder != "leader" {
			t.Fatalf("%s: a mere look tells of %+v", key, a)
		}
		standby.told.Store(0)
		if a := ask(standby, "b", true); a.Holder != "next" || a.Epoch != next {
			t.Errorf("%s: told of %+v, want the term %d of next", key, a, next)
		}
	}
}

// Others wait for a node of a higher priority. One that stands aside must not make them.
func TestWhoeverStandsAsideKeepsNobodyWaitingForItsPriority(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	store, err := Open(Options{URL: r.URL(), Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // the test has ended
	node := func(id string, priority int) *Lock {
		l, err := NewLock(store, LockOptions{Key: "k", NodeID: id, TTL: 10 * time.Second, Presence: Presence{Priority: priority}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		return l
	}
	aside, leader, next := node("aside", 7), node("leader", 0), node("next", 0)
	ask := func(l *Lock, c elector.Candidate) elector.Answer {
		t.Helper()
		a, err := l.Acquire(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	ask(leader, elector.Candidate{Owner: "a"})
	for _, polling := range []bool{false, true} {
		aside.told.Store(0)
		ask(aside, elector.Candidate{Owner: "b", Observer: true, Polling: polling})
	}
	if err := leader.Release(t.Context(), "a", elector.Handover{Event: "released"}); err != nil {
		t.Fatal(err)
	}
	if a := ask(next, elector.Candidate{Owner: "c"}); a.Outcome != elector.Won {
		t.Errorf("the free lock is not won: %+v", a)
	}
}
