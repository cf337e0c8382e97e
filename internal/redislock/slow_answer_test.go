package redislock_test

import (
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

// A slow answer must not make a lease seem longer, because the lease would then seem to vanish too early.
func TestASlowAnswerDoesNotMakeALeaseSeemToVanish(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	p := r.Proxy()
	far := redistest.Open(t, redisconn.Options{URL: r.URLThrough(p)})
	const ttl = 2 * shortLease
	a := newLock(t, open(t, r), "baton", "a", ttl)
	b := newLock(t, far, "baton", "b", ttl)
	won, err := a.Acquire(t.Context(), elector.Candidate{Owner: "o1"})
	ended := time.Now().Add(ttl)
	if err != nil || won.Outcome != elector.Won {
		t.Fatalf("%+v, %v", won, err)
	}
	if _, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o2"}); err != nil {
		t.Fatal(err)
	}
	p.HangReplies()
	time.AfterFunc(ttl/3, p.Unhang)
	if held, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o2", Polling: true}); err != nil || held.Outcome != elector.Held {
		t.Fatalf("%+v, %v", held, err)
	}
	time.Sleep(time.Until(ended.Add(20 * time.Millisecond)))
	if next, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o2", Polling: true}); err != nil || next.Outcome != elector.Won {
		t.Errorf("after the lease has ended: %+v, %v; want it won", next, err)
	}
}

// A poll that fails brings no new knowledge, so the node must keep its earlier knowledge of the lease.
func TestALookThatFailsDoesNotForgetTheLease(t *testing.T) {
	r := testsupport.StartRedis(t)
	p := r.Proxy()
	far := redistest.Open(t, redisconn.Options{URL: r.URLThrough(p)})
	a, b := newLock(t, open(t, r), "baton", "a", 5*time.Second), newLock(t, far, "baton", "b", 5*time.Second)
	won, err := a.Acquire(t.Context(), elector.Candidate{Owner: "o1"})
	if err != nil || won.Outcome != elector.Won {
		t.Fatalf("%+v, %v", won, err)
	}
	if _, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o2"}); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if _, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o2", Polling: true}); err == nil {
		t.Fatal("a cut connection answers")
	}
	r.Client(t).Do("DEL", "baton")
	if next, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o2"}); err != nil || next.Outcome != elector.Wait {
		t.Errorf("%+v, %v; want it to wait, since a trusts its lease", next, err)
	}
}
