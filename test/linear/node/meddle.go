package main

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"baton/internal/elector"
	"baton/test/linear/wire"
)

// past is the terms of this process that are over.
type past struct {
	mu    sync.Mutex
	terms []pastTerm
}

type pastTerm struct {
	owner string
	epoch int64
	over  int64
}

func (p *past) add(t *elector.Term) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.terms = append(p.terms, pastTerm{t.Owner(), t.Epoch(), now()})
}

// any is a term whose lease is over too, however its release went.
func (p *past) any(lease time.Duration) (pastTerm, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var over []pastTerm
	for _, t := range p.terms {
		if now()-t.over > int64(3*lease/2) {
			over = append(over, t)
		}
	}
	if len(over) == 0 {
		return pastTerm{}, false
	}
	return over[rand.IntN(len(over))], true
}

// meddle renews and releases the lock, on each order, for an owner that holds nothing. The lock
// must refuse both. An elector never asks so: without meddle the test would not notice a lock
// without these checks.
//
// Each line of orders is the end of the order's validity. The nemesis gives orders when the
// store is whole and a node leads: a store that has lost its lock must take a renewing node for
// the leader that it has lost.
func meddle(ctx context.Context, s wire.Setup, lock elector.Lock, p *past, orders io.Reader) {
	for lines := bufio.NewScanner(orders); lines.Scan(); {
		until, err := strconv.ParseInt(lines.Text(), 10, 64)
		left := time.Duration(until - now())
		if err != nil || left <= 0 {
			continue // it was given while the process was stopped
		}
		t, found := p.any(s.Timing.TTL)
		if owner, err := newOwner(); err == nil && (!found || rand.IntN(3) == 0) {
			t = pastTerm{owner: owner, epoch: 1}
		}
		attempt, cancel := context.WithTimeout(ctx, min(left, s.Timing.Timeout))
		if rand.IntN(2) == 0 {
			_, _ = lock.Renew(attempt, t.owner, t.epoch)
		} else {
			_ = lock.Release(attempt, t.owner, elector.Handover{Event: string(elector.EventReleased), Reason: "meddling"})
		}
		cancel()
	}
}
