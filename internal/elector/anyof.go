package elector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
)

// AnyOf is a Lock made of several, its slots: the holder of one of them holds it. N
// slots let N holders in, as a semaphore of N does. The free slot with the lowest
// number is taken.
//
// A slot's epoch is above those of the slot's earlier terms, not above the others': as a fencing token it is valid for the data of that
// slot.
type AnyOf struct {
	slots []Lock

	mu    sync.Mutex
	owner string // the last candidate
	at    int    // the slot that the owner holds, or may hold: its request was not answered; -1 none
	// floors are the highest epochs known of each slot. Another slot's would make a
	// slot that was never taken seem to have forgotten its leader.
	floors []int64
}

// NewAnyOf makes a lock of these slots, at least one.
func NewAnyOf(slots []Lock) (*AnyOf, error) {
	if len(slots) == 0 {
		return nil, errors.New("elector: a lock of several needs at least one")
	}
	return &AnyOf{slots: slots, at: -1, floors: make([]int64, len(slots))}, nil
}

// Slot is the slot that the last winner holds, counted from 1.
func (a *AnyOf) Slot() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at + 1
}

// Acquire implements Lock. A slot with a missing answer is asked first the next time, and no other until it has answered: so an owner
// never has two.
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
		nearest.Epoch = 0 // it says nothing about the other slots
	}
	return nearest, nil
}

// candidacy begins or continues an owner's candidacy; it returns the slot in doubt, or -1.
func (a *AnyOf) candidacy(owner string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owner != owner {
		a.owner, a.at = owner, -1
	}
	return a.at
}

// ask notes that slot i may be the owner's from now on, and returns its floor.
func (a *AnyOf) ask(i int) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = i
	return a.floors[i]
}

// settle notes an answer: the owner has that slot, or none with -1.
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

// held is the slot that owner holds, or may hold; nil if it cannot hold any.
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
