package baton_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/child"
	"baton/pkg/baton"
)

// The test's binary is also a process that leads, which may be stopped or killed.
func TestMain(m *testing.M) {
	child.InheritNoIgnoredSignals()
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	if len(os.Args) == 4 && os.Args[1] == "leader" {
		os.Exit(leader(os.Args[2], os.Args[3]))
	}
	r, err := testsupport.RunRedis("") // of the examples
	if err != nil {
		panic(err)
	}
	if err := os.Setenv("REDIS_URL", r.URL()); err != nil {
		panic(err)
	}
	testsupport.AtOnce(6)
	testsupport.Main(m, r.Stop)
}

// leader leads until it is killed, and prints what happens to it. What it does takes a while to
// end: "deaf" never ends.
func leader(url, manner string) int {
	l := baton.Lock{Key: "lock", Redis: baton.Redis{URL: url}, TTL: childTTL}
	err := baton.Lead(context.Background(), l, func(ctx context.Context, term baton.Term) error {
		fmt.Println("begin", term.Epoch())
		<-ctx.Done()
		if manner == "deaf" {
			select {}
		}
		fmt.Println("end", term.Epoch(), term.Trusted(), context.Cause(ctx))
		return nil
	})
	fmt.Println("over", err)
	return 0
}

// childTTL is the lease of a leader that is a process of its own.
const childTTL = 3 * time.Second

// post is where leaders are seen: how many there are at a time, and in which order they came.
type post struct {
	t      *testing.T
	inside atomic.Int32
	last   atomic.Int64
	terms  atomic.Int32
}

// lead is work until ctx ends.
func (p *post) lead(ctx context.Context, term baton.Term) error {
	p.enter(term)
	<-ctx.Done()
	p.inside.Add(-1)
	return nil
}

func (p *post) enter(term baton.Term) {
	if n := p.inside.Add(1); n != 1 {
		p.t.Errorf("%d leaders at a time, one of epoch %d", n, term.Epoch())
	}
	if before := p.last.Swap(term.Epoch()); before >= term.Epoch() {
		p.t.Errorf("epoch %d after %d", term.Epoch(), before)
	}
	p.terms.Add(1)
}

// start leads in a goroutine; what it returns ends that, and waits.
func start(t *testing.T, l baton.Lock, work func(context.Context, baton.Term) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- baton.Lead(ctx, l, work) }()
	var over bool
	stop = func() {
		if over {
			return
		}
		over = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Lead: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("Lead does not return")
		}
	}
	t.Cleanup(stop)
	return stop
}
