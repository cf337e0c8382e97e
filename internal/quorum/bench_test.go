package quorum_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/quorum"
	"baton/internal/testsupport/fakelock"
)

// perNode is the timeout of a request to one master with the TTL of these tests.
const perNode = 500 * time.Millisecond

// links gives a fault to the requests of one node to each master.
type links struct {
	mu    sync.Mutex
	fault map[int]func(op string) fakelock.Fault
}

func (l *links) set(f func(op string) fakelock.Fault, masters ...int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == nil {
		l.fault = map[int]func(string) fakelock.Fault{}
	}
	for _, m := range masters {
		l.fault[m] = f
	}
}

func (l *links) of(master int, op string) fakelock.Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.fault[master]; f != nil {
		return f(op)
	}
	return fakelock.Fault{}
}

func always(f fakelock.Fault) func(string) fakelock.Fault {
	return func(string) fakelock.Fault { return f }
}

func only(op string, f fakelock.Fault) func(string) fakelock.Fault {
	return func(asked string) fakelock.Fault {
		if asked == op {
			return f
		}
		return fakelock.Fault{}
	}
}

var (
	hung    = always(fakelock.Fault{LoseRequest: true})
	refuses = always(fakelock.Fault{Refuse: true})
)

// bench is a node "a" on n masters, with its own links.
type bench struct {
	t   *testing.T
	ctx context.Context
	masters
	*quorum.Lock
	links links
}

// on runs a test in a bubble.
func on(t *testing.T, n int, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, ctx: t.Context(), masters: newMasters(n, timing.TTL)}
		b.Lock = b.lock(t, "a", timing.TTL, b.links.of)
		test(t, b)
		b.links.set(nil, 0, 1, 2, 3, 4)
		time.Sleep(time.Minute) // all goroutines end; otherwise the bubble would not end
	})
}

func (b *bench) ask(c elector.Candidate) elector.Answer {
	b.t.Helper()
	a, err := b.Acquire(b.ctx, c)
	if err != nil {
		b.t.Fatalf("acquire by %s: %v", c.Owner, err)
	}
	return a
}

func (b *bench) win(owner string) elector.Answer {
	b.t.Helper()
	a := b.ask(elector.Candidate{Owner: owner})
	if a.Outcome != elector.Won {
		b.t.Fatalf("acquire by %s: %+v, want it won", owner, a)
	}
	return a
}

// elapsed returns how long do takes in the bubble.
func elapsed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}
