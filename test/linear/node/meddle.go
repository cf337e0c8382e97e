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

// past contains the ended terms of this process.
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

// any returns a term whose lease is also over, whether its release succeeded or not.
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

// On each order, meddle renews and releases the lock for an owner that does not hold the lock. The lock must refuse both requests. An
// elector never sends such requests, so without meddle the test would not notice a lock without these checks.
//
// Each line of orders contains the time when the order becomes invalid. The nemesis gives orders only while the store has its data and a
// node leads. A store that has lost its lock must accept a renewal as that of the lost leader.
func meddle(ctx context.Context, s wire.Setup, lock elector.Lock, p *past, orders io.Reader) {
	for lines := bufio.NewScanner(orders); lines.Scan(); {
		until, err := strconv.ParseInt(lines.Text(), 10, 64)
		left := time.Duration(until - now())
		if err != nil || left <= 0 {
			continue // the order is too old, because the process was stopped
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
