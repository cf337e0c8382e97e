package elector

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"baton/internal/heartbeat"

	"github.com/cenkalti/backoff/v5"
)

// After a held lock's lease should have ended, its key may live for another tick
// of the store's clock.
const expirySlack = 5 * time.Millisecond

// pollJitter spreads the attempts of standbys that have waited for the same time.
const pollJitter = 50 * time.Millisecond

// hintSpacing is how soon after an answer a hint may lead to the next attempt:
// any client can publish one.
const hintSpacing = 20 * time.Millisecond

// While a subscription delivers hints, polls only find out that one was lost. They are then three times rarer, but no rarer than every
// hintedPoll. With the defaults that is within the rest of a lease just before its renewal: as long as the leader renews, a standby that
// asks finds the same lease.
const (
	hintedPolls = 3 // poll intervals
	hintedPoll  = 8 * time.Second
)

// campaign asks for the lock until it is ours. It returns nil when ctx ends
// first, having given back a lock that an unanswered request may have taken.
func (e *Elector) campaign(ctx context.Context) (*Term, error) {
	owner, err := e.cfg.NewOwner()
	if err != nil {
		return nil, err
	}
	trouble := newBackoff(e.cfg.Timing.TTL)
	doubtful, polling := false, false
	e.since = freeSince{}
	var last Answer
	if e.isCoolingDown(last) {
		e.gather(ctx, hintSpacing) // another may lead by then; and the hint is our own
	}
	for ctx.Err() == nil {
		observes := e.cfg.Observer()
		observer := observes || e.isCoolingDown(last)
		deferring := !observer && e.acquireDelayLeft() > 0
		candidate := Candidate{
			Owner: owner, Floor: e.floor, Lease: e.lease.length, Observer: observer, Deferring: deferring, Polling: polling,
		}
		sent := e.cfg.Clock()
		answer, err := e.attempt(ctx, candidate)
		if ctx.Err() != nil {
			if doubtful || err != nil || answer.Outcome == Won {
				e.giveBack(ctx, cmp.Or(answer.Owner, owner))
			}
			return nil, nil
		}
		e.contact(err)
		if err != nil {
			// A refusal was not applied, but an earlier attempt may have been.
			doubtful, polling = doubtful || !errors.Is(err, ErrRefused), false
			if errors.Is(err, ErrSpent) {
				// The lease that the old owner may hold runs out.
				if owner, err = e.cfg.NewOwner(); err != nil {
					return nil, err
				}
				doubtful = false
			}
			e.known(Answer{Outcome: Wait}) // the state is unknown now
			e.pause(ctx, trouble.NextBackOff())
			continue
		}
		trouble.Reset()
		if answer.Outcome == Won {
			term := e.newTerm(cmp.Or(answer.Owner, owner), answer, sent)
			if term.Trusted() {
				return term, nil
			}
			// The answer came too late to start any work.
			e.giveBack(ctx, term.owner)
			if owner, err = e.cfg.NewOwner(); err != nil {
				return nil, err
			}
			doubtful = false
			continue
		}
		doubtful, last = false, answer
		e.since.learn(answer, e.cfg.Clock())
		if answer.Outcome == Wait && observer && !observes && !e.isCoolingDown(last) {
			polling = false
			continue // others have had their turn already: now as a candidate
		}
		if !observes && answer.Code == CodeLeft {
			answer.Reason = "" // there is no other reason, and the end of its term has said why it stands aside
		}
		e.known(answer)
		hinted := e.await(ctx, answer, deferring)
		polling = answer.Outcome == Held && !hinted
	}
	if doubtful {
		e.giveBack(ctx, owner)
	}
	return nil, nil
}

func (e *Elector) attempt(ctx context.Context, c Candidate) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timing.Timeout)
	defer cancel()
	return e.lock.Acquire(ctx, c)
}

func (e *Elector) newTerm(owner string, won Answer, sent heartbeat.Instant) *Term {
	t := &Term{
		closed: make(chan struct{}),
		lock:   e.lock, owner: owner, nodeID: e.cfg.NodeID,
		window: heartbeat.NewWindow(e.cfg.Clock, e.cfg.Timing, sent),
	}
	t.epoch.Store(won.Epoch)
	if won.FreeFor > 0 {
		t.freeSince = e.cfg.Clock().Add(-won.FreeFor)
	}
	return t
}

// await waits as long as the answer makes an attempt pointless, at most a poll interval: the poll is the truth, hints only shorten it. It
// reports whether a hint cut it short.
func (e *Elector) await(ctx context.Context, a Answer, deferring bool) (hinted bool) {
	poll := e.cfg.PollInterval
	if a.Outcome == Held && a.Holder != "" && e.cfg.Hinted() { // foreign clients give no hints
		poll = max(poll, min(hintedPolls*poll, hintedPoll))
	}
	began := e.cfg.Clock()
	wait := e.coolDown.within(began, min(a.Left+expirySlack, poll)+rand.N(pollJitter))
	if deferring && e.since.free {
		// Not later than that: there may be no other node. With none left the next attempt follows at once.
		wait = min(wait, e.acquireDelayLeft())
	}
	if !e.pause(ctx, wait) {
		return false
	}
	// A flood of hints is not answered one by one.
	early := hintSpacing - e.cfg.Clock().Sub(began)
	if e.cfg.HintSpread > 0 {
		early = max(early, rand.N(e.cfg.HintSpread))
	}
	e.gather(ctx, early)
	return true
}

// gather waits d for further hints: one attempt answers all of them.
func (e *Elector) gather(ctx context.Context, d time.Duration) {
	if d > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	for {
		select {
		case <-e.cfg.Hints:
		default:
			return
		}
	}
}

// known notes the holder of the lock, or why no node may take it, and reports changes.
func (e *Elector) known(a Answer) {
	e.floor = max(e.floor, a.Epoch)
	if a.Outcome == Held {
		e.lease.heard(a.Lease, e.cfg.Clock())
	}
	e.mu.Lock()
	held := a.Outcome == Held
	changed := e.held != held || e.holder != a.Holder || e.holderEpoch != a.Epoch
	waits := a.Reason != "" && a.Reason != e.waiting
	e.leading, e.held, e.holder, e.holderEpoch, e.waiting, e.waitCode = nil, held, a.Holder, a.Epoch, a.Reason, a.Code
	e.mu.Unlock()
	switch {
	case changed && held:
		e.cfg.Observe(Event{Kind: EventStandby, Holder: a.Holder, Epoch: a.Epoch, Lease: a.Lease})
	case waits:
		e.cfg.Observe(Event{Kind: EventWaiting, Epoch: a.Epoch, Reason: a.Reason})
	}
}

// giveBack releases a lock that our request has taken, or may have taken, without a term.
func (e *Elector) giveBack(ctx context.Context, owner string) {
	// If the release is not confirmed, the lease runs out: contact has reported why.
	_ = e.release(ctx, owner, Handover{Event: string(EventReleased), Reason: "no term came of it"})
}

// newBackoff paces the attempts while the store is away: 100 ms to 5 s, for ever.
// With a short ttl the pause, jitter included, stays below it: once the store is
// back, a node leads within one lease.
func newBackoff(ttl time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = 100 * time.Millisecond
	b.MaxInterval = min(5*time.Second, ttl/2)
	b.Multiplier = 2
	b.RandomizationFactor = 0.5
	return b
}
