package elector_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/testsupport/fakelock"
)

var timing = heartbeat.Timing{
	TTL: 10 * time.Second, Interval: 2 * time.Second, Timeout: time.Second,
	Margin: 350 * time.Millisecond, Drain: 2 * time.Second,
}

const (
	poll      = 2 * time.Second
	softAfter = 7650 * time.Millisecond // of a window, counted from the sending of the last answered request
	hardAfter = 9650 * time.Millisecond
)

// node is one elector under test, with the events that it has reported.
type node struct {
	*elector.Elector
	id     string
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	events []elector.Event
	died   []string
}

// start runs an elector on lock until the test stops it. If lead is nil, the work goes on until its context ends.
func start(t *testing.T, id string, lock elector.Lock, hints <-chan elector.Hint, lead elector.LeadFunc) *node {
	t.Helper()
	return startKnowing(t, 0, id, lock, hints, lead)
}

// startKnowing is start for a node that knows an earlier epoch.
func startKnowing(t *testing.T, floor int64, id string, lock elector.Lock, hints <-chan elector.Hint, lead elector.LeadFunc) *node {
	t.Helper()
	return startWith(t, id, lock, lead, elector.Config{Hints: hints, Floor: floor})
}

// startWith is start with additional settings.
func startWith(t *testing.T, id string, lock elector.Lock, lead elector.LeadFunc, c elector.Config) *node {
	t.Helper()
	n := &node{id: id, done: make(chan struct{})}
	if lead == nil {
		lead = func(ctx context.Context, _ *elector.Term) error { <-ctx.Done(); return nil }
	}
	began := time.Now()
	var owners atomic.Int64
	e, err := elector.New(lock, lead, elector.Config{
		NodeID: id, Timing: timing, PollInterval: poll, Hints: c.Hints, Hinted: c.Hinted, Floor: c.Floor, Observer: c.Observer, AcquireDelay: c.AcquireDelay, Counts: c.Counts, Beat: c.Beat,
		NewOwner: func() (string, error) { return fmt.Sprintf("%s-%d", id, owners.Add(1)), nil },
		Clock:    func() heartbeat.Instant { return heartbeat.Instant(time.Since(began)) },
		Die: func(reason string) {
			n.mu.Lock()
			n.died = append(n.died, reason)
			n.mu.Unlock()
		},
		Observe: func(ev elector.Event) {
			n.mu.Lock()
			n.events = append(n.events, ev)
			n.mu.Unlock()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Elector = e
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	go func() {
		defer close(n.done)
		if err := e.Run(ctx); err != nil {
			t.Errorf("node %s: %v", id, err)
		}
	}()
	return n
}

func (n *node) stop() {
	n.cancel()
	<-n.done
}

// kinds returns the node's events of these kinds.
func (n *node) kinds(of ...elector.EventKind) []elector.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []elector.Event
	for _, ev := range n.events {
		for _, k := range of {
			if ev.Kind == k {
				found = append(found, ev)
			}
		}
	}
	return found
}

func (n *node) deaths() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.died)
}

// script is a fault function that a test changes while it runs.
type script struct {
	mu sync.Mutex
	f  func(op string) fakelock.Fault
}

func (s *script) set(f func(op string) fakelock.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f = f
}

func (s *script) fault(op string) fakelock.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f == nil {
		return fakelock.Fault{}
	}
	return s.f(op)
}

func silent(string) fakelock.Fault { return fakelock.Fault{LoseRequest: true} }

var errWork = errors.New("the work failed")
