package elector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
)

// AnyOf is a Lock made of several locks, its slots: the holder of any slot holds the lock. With N slots, N nodes can hold it at the same
// time, as with a semaphore. A candidate takes the free slot with the lowest number.
//
// A slot's epoch is above the epochs of the slot's earlier terms, but not above the epochs of the other slots. So as a fencing token it
// protects only the data of that slot.
type AnyOf struct {
	slots []Lock

	mu    sync.Mutex
	owner string // the last candidate
	at    int    // the slot that the owner holds, or may hold because its request was not answered; -1 for none
	// floors[i] is the highest known epoch of slot i. A slot must not use the floor of another slot. Otherwise a slot that was never
	// taken would look like a slot that has lost its epoch.
	floors []int64
}

// NewAnyOf makes one lock of these slots. It returns an error if there is no slot.
func NewAnyOf(slots []Lock) (*AnyOf, error) {
	if len(slots) == 0 {
		return nil, errors.New("elector: AnyOf needs at least one lock")
	}
	return &AnyOf{slots: slots, at: -1, floors: make([]int64, len(slots))}, nil
}

// Slot returns the number of the slot that the last winner holds. The first slot has the number 1.
func (a *AnyOf) Slot() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at + 1
}

// Acquire implements Lock. If a slot's answer is missing, the next call asks that slot first, and asks no other slot until that slot has
// answered. So the same owner never holds two slots.
func (a *AnyOf) Acquire(ctx context.Context, c Candidate) (Answer, error) {
	doubtful := a.candidacy(c.Owner)
	order := make([]int, 0, len(a.slots)+1)
	if doubtful >= 0 {
		order = append(order, doubtful)
	}
	for i := range a.slots {
		if i != doubtful {
			order = append(order, i)
		}
	}
	var nearest Answer
	for n, i := range order {
		asked := c
		asked.Floor = max(c.Floor, a.ask(i))
		answer, err := a.slots[i].Acquire(ctx, asked)
		if err != nil {
			if i != doubtful && errors.Is(err, ErrRefused) {
				a.settle("", -1)
			}
			return Answer{}, fmt.Errorf("slot %d: %w", i+1, err)
		}
		if answer.Outcome == Won {
			a.settle(cmp.Or(answer.Owner, c.Owner), i)
			return answer, nil
		}
		a.settle("", -1)
		a.learn(i, answer.Epoch)
		if n == 0 || answer.Left < nearest.Left {
			nearest = answer
		}
	}
	if len(a.slots) > 1 {
		nearest.Epoch = 0 // this slot's epoch says nothing about the other slots
	}
	return nearest, nil
}

// candidacy begins or continues the candidacy of an owner. It returns the index of the slot whose answer is missing, or -1 if there is
// none.
func (a *AnyOf) candidacy(owner string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owner != owner {
		a.owner, a.at = owner, -1
	}
	return a.at
}

// ask records that slot i may belong to the owner from now on. It returns the floor of this slot, which is the slot's highest known epoch.
func (a *AnyOf) ask(i int) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = i
	return a.floors[i]
}

// settle records which slot the owner holds. The argument at is the index of that slot, or -1 if the owner holds no slot.
func (a *AnyOf) settle(owner string, at int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at = at; at >= 0 {
		a.owner = owner
	}
}

func (a *AnyOf) learn(i int, epoch int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.floors[i] = max(a.floors[i], epoch)
}

// held returns the slot that the argument owner holds, or may hold. It returns nil if this owner certainly holds no slot.
func (a *AnyOf) held(owner string) Lock {
	a.mu.Lock()
	defer a.mu.Unlock()
	if owner != a.owner || a.at < 0 {
		return nil
	}
	return a.slots[a.at]
}

// Renew implements Lock.
func (a *AnyOf) Renew(ctx context.Context, owner string, epoch int64) (Order, error) {
	if slot := a.held(owner); slot != nil {
		return slot.Renew(ctx, owner, epoch)
	}
	return Order{}, ErrLost
}

// Release implements Lock.
func (a *AnyOf) Release(ctx context.Context, owner string, h Handover) error {
	if slot := a.held(owner); slot != nil {
		return slot.Release(ctx, owner, h)
	}
	return nil
}

// Raise implements Lock.
func (a *AnyOf) Raise(ctx context.Context, owner string, floor int64) (int64, error) {
	if slot := a.held(owner); slot != nil {
		return slot.Raise(ctx, owner, floor)
	}
	return 0, ErrLost
}
