package redisconn

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

func newSharedOf(t *testing.T) *Shared {
	t.Helper()
	store, err := Open(Options{URL: testsupport.StartRedis(t).URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := NewShared(store)
	t.Cleanup(s.Close)
	return s
}

func TestALockThatIsLeftDoesNotCutOffTheOthersOfItsProcess(t *testing.T) {
	s := newSharedOf(t)
	slow, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	left := make(chan error, 1)
	go func() {
		_, err := s.do(slow, "BLPOP", []any{"nothing", "2"})
		left <- err
	}()
	time.Sleep(50 * time.Millisecond) // the request was sent by now
	patient, done := context.WithTimeout(t.Context(), 5*time.Second)
	defer done()
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := s.do(patient, "SET", []any{"k", "v"}); err != nil {
		t.Errorf("a command behind one that nobody wants any more: %v", err)
	}
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the one that nobody wants any more: %v", err)
	}
	if s.dialled != 1 {
		t.Errorf("it took %d connections", s.dialled)
	}
}

func TestARefusalIsNotTheAnswerToWhoeverWasToldThatThereIsNothing(t *testing.T) {
	s := newSharedOf(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	batch := []*request{
		{ctx: ctx, name: "GET", args: []any{"nothing"}, done: make(chan struct{})},
		{ctx: ctx, name: "NONSENSE", done: make(chan struct{})},
	}
	s.trip(batch)
	for _, r := range batch {
		<-r.done
	}
	if reply, err := redis.String(batch[0].reply, batch[0].err); !errors.Is(err, redis.ErrNil) {
		t.Errorf("GET of nothing: %q, %v", reply, err)
	}
	if batch[1].err == nil {
		t.Error("nonsense was not refused")
	}
}

// ask runs a command with a time limit, and returns a channel that receives the error.
func (s *Shared) ask(t *testing.T, patience time.Duration, name string, args ...any) <-chan error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		_, err := s.do(ctx, name, args)
		ended <- err
	}()
	return ended
}

func TestALateAnswerCostsItsOwnRequestAlone(t *testing.T) {
	s := newSharedOf(t)
	late := s.ask(t, 300*time.Millisecond, "BLPOP", "nothing", "1") // the server answers no other request before this one
	var behind []<-chan error
	for range 100 {
		behind = append(behind, s.ask(t, time.Minute, "INCR", "n"))
	}
	if err := <-late; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the late one: %v", err)
	}
	for _, b := range behind {
		if err := <-b; err != nil {
			t.Fatalf("one that was sent behind it: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if n, err := redis.Int(s.do(ctx, "GET", []any{"n"})); n != 100 || err != nil {
		t.Errorf("100 commands counted to %d, %v", n, err)
	}
}

// Each reply belongs to the oldest request that has no reply yet, also after a reply that was dropped.
func TestAConnectionOnWhichAnswersComeIsKept(t *testing.T) {
	s := newSharedOf(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	impatient, leave := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer leave()
	batch := []*request{
		{ctx: ctx, name: "ECHO", args: []any{"first"}, done: make(chan struct{})},
		{ctx: impatient, name: "BLPOP", args: []any{"nothing", "1"}, done: make(chan struct{})},
		{ctx: ctx, name: "ECHO", args: []any{"third"}, done: make(chan struct{})},
	}
	s.trip(batch)
	<-batch[0].done
	<-impatient.Done()
	s.leave(batch[1], true)
	if reply, err := redis.String(s.do(ctx, "ECHO", []any{"fourth"})); reply != "fourth" || err != nil {
		t.Errorf("ECHO fourth: %q, %v", reply, err)
	}
	<-batch[2].done
	if reply, err := redis.String(batch[2].reply, batch[2].err); reply != "third" || err != nil {
		t.Errorf("ECHO third: %q, %v", reply, err)
	}
	if s.dialled != 1 {
		t.Errorf("it took %d connections", s.dialled)
	}
}

// If no reply comes at all, the connection may be dead, so the next request must not wait on it.
func TestASilentConnectionIsNotAskedAgain(t *testing.T) {
	r := testsupport.StartRedis(t)
	proxy := r.Proxy()
	store, err := Open(Options{URL: r.URLThrough(proxy)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := NewShared(store)
	t.Cleanup(s.Close)
	if err := <-s.ask(t, time.Minute, "PING"); err != nil {
		t.Fatal(err)
	}
	proxy.Strand()
	if err := <-s.ask(t, 100*time.Millisecond, "PING"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("asked one that hangs: %v", err)
	}
	if err := <-s.ask(t, time.Minute, "PING"); err != nil {
		t.Errorf("asked again: %v", err)
	}
	if s.dialled != 2 {
		t.Errorf("it took %d connections, want a fresh one", s.dialled)
	}
}

// Hundreds of requests for free locks must not delay the renewals of held locks.
func TestRenewalsGoBeforeTheOthersOfTheirRoundTrip(t *testing.T) {
	s := newSharedOf(t)
	s.driving = true // nothing is sent yet
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var answers sync.WaitGroup
	ask := func(ctx context.Context, text string) {
		queued := func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.queue)
		}
		before := queued()
		answers.Go(func() {
			if _, err := s.do(ctx, "APPEND", []any{"k", text}); err != nil {
				t.Error(err)
			}
		})
		for queued() == before {
			time.Sleep(time.Millisecond)
		}
	}
	ask(ctx, "c")
	ask(First(ctx), "a")
	ask(ctx, "d")
	ask(First(ctx), "b")
	s.drive()
	answers.Wait()
	if got, err := redis.String(s.do(ctx, "GET", []any{"k"})); got != "abcd" || err != nil {
		t.Errorf("they went as %q, %v; want abcd", got, err)
	}
}
