package redisstore

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
		_, err := s.do(slow, "BLPOP", []any{"nothing", "0.5"})
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
	s.trip(nil, batch)
	if reply, err := redis.String(batch[0].reply, batch[0].err); !errors.Is(err, redis.ErrNil) {
		t.Errorf("GET of nothing: %q, %v", reply, err)
	}
	if batch[1].err == nil {
		t.Error("nonsense was not refused")
	}
}
