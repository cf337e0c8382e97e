package baton_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/pkg/baton"
)

// hold takes a lock that is free.
func hold(t *testing.T, l baton.Lock) *baton.Held {
	t.Helper()
	h, err := l.TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Unlock(context.Background()) })
	return h
}

func TestALockIsHeldByOneAtATime(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	first := hold(t, lockOn(r, "a"))
	if _, err := lockOn(r, "b").TryLock(t.Context()); !errors.Is(err, baton.ErrHeld) || !strings.Contains(err.Error(), "held by a") {
		t.Errorf("TryLock of a held lock: %v", err)
	}
	if err := first.Confirm(t.Context()); err != nil || !first.Trusted() {
		t.Errorf("it is held: %v, %v", first.Trusted(), err)
	}
	next := make(chan *baton.Held)
	go func() {
		h, err := lockOn(r, "b").Lock(t.Context())
		if err != nil {
			t.Error(err)
		}
		next <- h
	}()
	testsupport.Await(t, "b waits", func() bool { return r.Client(t).Num("HLEN", "{lock}:nodes") == 2 })
	for range 2 {
		if err := first.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock: %v", err)
		}
	}
	if first.Context().Err() == nil || first.Trusted() {
		t.Error("the lock is trusted after Unlock")
	}
	second := testsupport.Receive(t, "b holds the lock", next)
	if second.Epoch() <= first.Epoch() || second.Node() != "b" {
		t.Errorf("epoch %d of %s after %d", second.Epoch(), second.Node(), first.Epoch())
	}
	if err := second.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	if n := r.Client(t).Num("EXISTS", "lock", "{lock}:nodes"); n != 0 {
		t.Errorf("%d keys are left of the lock and its nodes", n)
	}
}

// TestToGiveUpALockLeavesNothing checks that a process that gives up waiting leaves nothing behind, and that the holder keeps the lock.
func TestToGiveUpALockLeavesNothing(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	holder := hold(t, lockOn(r, "a"))
	enough := errors.New("waited enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	l := lockOn(r, "b")
	l.OnChange = func(e baton.Event) {
		if e.Kind == baton.EventFollowing {
			cancel(enough)
		}
	}
	if h, err := l.Lock(ctx); h != nil || !errors.Is(err, enough) {
		t.Errorf("Lock: %v", err)
	}
	if n := r.Client(t).Num("HLEN", "{lock}:nodes"); n != 1 || holder.Confirm(t.Context()) != nil {
		t.Errorf("%d nodes are listed, the holder: %v", n, holder.Confirm(t.Context()))
	}
	observer := lockOn(r, "c")
	observer.Observer = true
	for name, l := range map[string]baton.Lock{"without a key": {}, "of an observer": observer} {
		if _, err := l.TryLock(t.Context()); !errors.Is(err, baton.ErrInvalid) {
			t.Errorf("a lock %s: %v", name, err)
		}
	}
}

// TestALockThatEndsBeforeUnlockSaysSo checks that the error of a lock that ended before Unlock says whether the lock was lost or expired.
func TestALockThatEndsBeforeUnlockSaysSo(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	proxy := r.Proxy()
	l := endingOn(r, "a")
	l.Redis.URL = r.URLThrough(proxy)
	ends := func(h *baton.Held, want error) {
		t.Helper()
		testsupport.Receive(t, "the end of the lock", h.Context().Done())
		if err := h.Unlock(t.Context()); !errors.Is(err, want) || !errors.Is(context.Cause(h.Context()), want) {
			t.Errorf("Unlock: %v, the context: %v, want %v", err, context.Cause(h.Context()), want)
		}
	}
	h := hold(t, l)
	if _, err := r.Conn().Do("SET", "lock", "somebody else's"); err != nil {
		t.Fatal(err)
	}
	ends(h, baton.ErrLost)
	if _, err := redis.Int(r.Conn().Do("DEL", "lock")); err != nil {
		t.Fatal(err)
	}
	h = hold(t, l)
	proxy.Hang()
	ends(h, baton.ErrExpired)
	if _, err := l.TryLock(t.Context()); err == nil || errors.Is(err, baton.ErrHeld) {
		t.Errorf("TryLock without Redis: %v", err)
	}
}

func TestAnElectorKnowsWhoLeads(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	electors := map[string]*baton.Elector{}
	stops := map[string]func(){}
	for _, node := range []string{"a", "b", "c"} {
		e, err := baton.NewElector(lockOn(r, node))
		if err != nil {
			t.Fatal(err)
		}
		if e.IsLeader() || e.Leader() != "" {
			t.Errorf("%s leads before it campaigns", node)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- e.Lead(ctx, func(ctx context.Context, _ baton.Term) error { <-ctx.Done(); return nil })
		}()
		stops[node] = func() {
			cancel()
			if err := testsupport.Receive(t, "the end of "+node, done); err != nil {
				t.Error(err)
			}
		}
		electors[node] = e
		testsupport.Await(t, node+" knows the leader", func() bool { return e.Leader() == "a" })
	}
	a, b := electors["a"], electors["b"]
	testsupport.Await(t, "a leads", a.IsLeader)
	if b.IsLeader() {
		t.Error("b leads, too")
	}
	if err := a.Lead(t.Context(), func(context.Context, baton.Term) error { return nil }); !errors.Is(err, baton.ErrInvalid) {
		t.Errorf("a second campaign at a time: %v", err)
	}
	stops["c"]()
	if who := electors["c"].Leader(); who != "" {
		t.Errorf("c campaigns no more, and knows %q", who)
	}
	stops["a"]()
	if a.IsLeader() || a.Leader() != "" {
		t.Errorf("a has ended: leads %v, knows %q", a.IsLeader(), a.Leader())
	}
	testsupport.Await(t, "b leads", func() bool { return b.IsLeader() && b.Leader() == "b" })
	stops["b"]()
}

// TestALockIsOnTheListOfLocks checks that baton who finds the lock without its name.
func TestALockIsOnTheListOfLocks(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	hold(t, lockOn(r, "a"))
	testsupport.Await(t, "the lock is on the list", func() bool {
		_, err := redis.Float64(r.Client(t).Do("ZSCORE", "baton:locks", "lock"), nil)
		return err == nil
	})
}
