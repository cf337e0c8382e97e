package redisconn

import (
	"context"
	"errors"
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
	time.Sleep(50 * time.Millisecond) // it is under way
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

// ask runs a command with so much patience, and says how it ended.
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
	late := s.ask(t, 300*time.Millisecond, "BLPOP", "nothing", "1") // nothing else is answered meanwhile
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

// Each answer is that of the request that was sent first, also behind one that is thrown away.
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

// Where nothing at all comes, nothing may ever come: the next one does not wait for it.
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
