package elector_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport/fakelock"
	"baton/internal/testsupport/locktest"
)

// semaphore holds n slots as each node sees them.
type semaphore struct {
	t      *testing.T
	stores []*fakelock.Store
}

const slotTTL = 200 * time.Millisecond

func newSemaphore(t *testing.T, n int) *semaphore {
	s := &semaphore{t: t}
	for range n {
		s.stores = append(s.stores, fakelock.NewStore(slotTTL))
	}
	return s
}

// node returns one contender's view of the slots. fault is called with the slot's number, counted from 1.
func (s *semaphore) node(id string, fault func(slot int, op string) fakelock.Fault) *elector.AnyOf {
	s.t.Helper()
	var slots []elector.Lock
	for i, store := range s.stores {
		var f func(op string) fakelock.Fault
		if fault != nil {
			f = func(op string) fakelock.Fault { return fault(i+1, op) }
		}
		slots = append(slots, store.Node(id, f))
	}
	a, err := elector.NewAnyOf(slots)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// held counts the slots that an owner holds.
func (s *semaphore) held(owner string) (n int) {
	for _, store := range s.stores {
		if holder, _ := store.Holder(); holder == owner {
			n++
		}
	}
	return n
}

func (s *semaphore) win(a *elector.AnyOf, owner string, slot int) {
	s.t.Helper()
	got, err := a.Acquire(context.Background(), elector.Candidate{Owner: owner})
	if err != nil || got.Outcome != elector.Won || a.Slot() != slot {
		s.t.Fatalf("%s asks: %+v in slot %d, %v; want slot %d", owner, got, a.Slot(), err, slot)
	}
}

func TestAnyOfOneConforms(t *testing.T) {
	locktest.RunInBubble(t, func(t *testing.T) locktest.Harness {
		s := newSemaphore(t, 1)
		return locktest.Harness{
			TTL: slotTTL, A: s.node("a", nil), B: s.node("b", nil), C: s.node("c", nil), Sleep: time.Sleep,
			Flush: func() { s.stores[0].Flush() },
			StepDown: func(to, reason string) error {
				s.stores[0].Order(elector.Order{StepDown: true, To: to, Reason: reason})
				return nil
			},
		}
	})
}

func TestASemaphoreLetsAsManyInAsItHasSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSemaphore(t, 3)
		nodes := make([]*elector.AnyOf, 4)
		for i := range nodes {
			nodes[i] = s.node(fmt.Sprint(i), nil)
		}
		for i := range 3 {
			s.win(nodes[i], fmt.Sprint("o", i), i+1)
			time.Sleep(slotTTL / 10)
		}
		got, err := nodes[3].Acquire(t.Context(), elector.Candidate{Owner: "o3"})
		if err != nil || got.Outcome != elector.Held || got.Holder != "0" || got.Left != slotTTL*7/10 || got.Epoch != 0 {
			t.Errorf("the fourth: %+v, %v; want to hear of the lease that ends first", got, err)
		}
		if err := nodes[1].Release(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil {
			t.Fatal(err)
		}
		s.win(nodes[3], "o3", 2)
		if _, err := nodes[1].Renew(t.Context(), "o1", 1); !errors.Is(err, elector.ErrLost) {
			t.Errorf("the renewal of a slot that was released: %v", err)
		}
		if _, err := nodes[3].Renew(t.Context(), "o3", 1); err != nil {
			t.Errorf("the renewal of slot 2: %v", err)
		}
	})
}

// A request whose answer was lost may have taken its slot, so another slot must not be taken beside it.
func TestAnOwnerNeverHasTwoSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSemaphore(t, 2)
		lose := true
		a := s.node("a", func(slot int, op string) fakelock.Fault {
			return fakelock.Fault{LoseReply: lose && slot == 1 && op == "acquire"}
		})
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), slotTTL/20)
			if got, err := a.Acquire(ctx, elector.Candidate{Owner: "o1"}); err == nil {
				t.Fatalf("without an answer: %+v", got)
			}
			cancel()
		}
		if n := s.held("o1"); n != 1 {
			t.Fatalf("o1 holds %d slots", n)
		}
		lose = false
		s.win(a, "o1", 1)
		// If the owner stops instead, the slot in doubt is given back.
		b := s.node("b", func(slot int, op string) fakelock.Fault {
			return fakelock.Fault{LoseReply: slot == 2 && op == "acquire"}
		})
		ctx, cancel := context.WithTimeout(t.Context(), slotTTL/20)
		defer cancel()
		if got, err := b.Acquire(ctx, elector.Candidate{Owner: "o2"}); err == nil {
			t.Fatalf("without an answer: %+v", got)
		}
		if s.held("o2") != 1 {
			t.Fatal("the request was not applied: this test shows nothing")
		}
		if err := b.Release(t.Context(), "o2", elector.Handover{Event: "released"}); err != nil || s.held("o2") != 0 {
			t.Errorf("given back: %v; o2 holds %d slots", err, s.held("o2"))
		}
	})
}

func TestASlotInDoubtThatIsSomebodyElsesIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSemaphore(t, 2)
		lose := true
		a := s.node("a", func(slot int, _ string) fakelock.Fault { return fakelock.Fault{LoseRequest: lose && slot == 1} })
		ctx, cancel := context.WithTimeout(t.Context(), slotTTL/20)
		defer cancel()
		if got, err := a.Acquire(ctx, elector.Candidate{Owner: "o1"}); err == nil {
			t.Fatalf("without an answer: %+v", got)
		}
		s.win(s.node("b", nil), "o2", 1)
		lose = false
		s.win(a, "o1", 2)
		if s.held("o1") != 1 {
			t.Errorf("o1 holds %d slots", s.held("o1"))
		}
	})
}

// If a slot's store has lost its data, candidates wait for that slot, as with a single lock.
func TestASlotThatHasForgottenItsHolderIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSemaphore(t, 1)
		a, b := s.node("a", nil), s.node("b", nil)
		s.win(a, "o1", 1)
		if got, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o2"}); err != nil || got.Outcome != elector.Held {
			t.Fatalf("%+v, %v", got, err)
		}
		s.stores[0].Flush()
		if got, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o2"}); err != nil || got.Outcome != elector.Wait {
			t.Errorf("after the store has lost its data: %+v, %v", got, err)
		}
	})
}
