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

// TestMain makes the test binary also usable as a process that leads, which a test can stop or kill.
func TestMain(m *testing.M) {
	child.InheritNoIgnoredSignals()
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	if len(os.Args) == 4 && os.Args[1] == "leader" {
		os.Exit(leader(os.Args[2], os.Args[3]))
	}
	r, err := testsupport.RunRedis("") // the server of the examples
	if err != nil {
		panic(err)
	}
	if err := os.Setenv("REDIS_URL", r.URL()); err != nil {
		panic(err)
	}
	testsupport.AtOnce(6)
	testsupport.Main(m, r.Stop)
}

// leader leads until it is killed, and prints its events. Its work needs some time to end; with the manner "deaf" it never ends.
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

// childTTL is the TTL of a leader in a separate process.
const childTTL = 3 * time.Second

// post records how many processes lead at the same time, and the order of their terms.
type post struct {
	t      *testing.T
	inside atomic.Int32
	last   atomic.Int64
	terms  atomic.Int32
}

// lead is work that runs until ctx ends.
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

// start leads in a goroutine. stop ends it and waits for its end.
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
