package redislock_test

import (
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
)

// Two processes with the same id are distinguished by their instances.
func TestANodeThatLeavesTakesNoOtherOfItsIDOffTheList(t *testing.T) {
	t.Parallel()
	s := open(t, testsupport.StartRedis(t))
	process := func(instance, twin string) *redislock.Lock {
		l := designedLock(t, s, redislock.LockOptions{Key: "baton", NodeID: "db1", TTL: 5 * time.Second,
			NodeInfo: redislock.NodeInfo{Priority: 1, Instance: instance, Twin: twin}})
		if _, err := l.Acquire(t.Context(), elector.Candidate{Owner: instance, Observer: true}); err != nil {
			t.Fatal(err)
		}
		return l
	}
	wantListed := func(want string) {
		t.Helper()
		p, err := redislock.NewElection(s, "baton", script.String).State(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, n := range p.Nodes {
			got += n.Instance
		}
		if got != want {
			t.Errorf("listed: %q, want %q", got, want)
		}
	}
	leave := func(l *redislock.Lock) {
		t.Helper()
		if err := l.Leave(t.Context()); err != nil {
			t.Error(err)
		}
	}
	first, second := process("a", ""), process("b", "")
	wantListed("b")
	leave(first) // the second process has written the last entry
	wantListed("b")
	leave(second)
	wantListed("")
	first, second = process("b", ""), process("a", "b")
	leave(second) // this process has written the last entry, and knows of the first process
	wantListed("a")
	leave(process("a", ""))
	wantListed("")
	leave(first)
	wantListed("")
}
