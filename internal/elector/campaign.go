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

// expirySlack is how long the key of a held lock may still exist after its lease should have ended. This time is one more tick of the
// store's clock.
const expirySlack = 5 * time.Millisecond

// pollJitter is the maximum random addition to a wait. It spreads the attempts of standbys that have waited for the same time.
const pollJitter = 50 * time.Millisecond

// hintSpacing is the minimum time between an answer and the next attempt that a hint causes. It is needed because any client can publish
// hints.
const hintSpacing = 20 * time.Millisecond

// While a subscription delivers hints, polls are needed only for hints that were lost. So the interval between polls is then three times as
// long, but at most hintedPoll. With the default settings, this interval is shorter than the rest of a lease just before its renewal. So
// while the leader renews the lease, a standby that polls always finds the same lease.
const (
	hintedPolls = 3 // poll intervals
	hintedPoll  = 8 * time.Second
)

// campaign asks for the lock until this node has it. If ctx ends earlier, campaign returns nil. Before that, it releases the lock if an
// unanswered request may have taken it.
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
		e.gather(ctx, hintSpacing) // another node may lead by then, and the hint may come from this node
	}
	for e.afterRenewals(ctx) {
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
			// This refusal was not applied, but an earlier attempt may have been applied.
			doubtful, polling = doubtful || !errors.Is(err, ErrRefused), false
			if errors.Is(err, ErrSpent) {
				// The old owner may hold a lease, which runs out.
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
			continue // others have had their turn already, so this node asks as a candidate
		}
		if !observes && answer.Code == CodeLeft {
			answer.Reason = "" // there is no other reason, and the end of its term has said why this node is in its cool-down
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

// afterRenewals waits while a renewal of this process is overdue, for example on a host without free processors. Otherwise winning another
// lock would delay the renewal more, and the locks that this process holds could be lost. It waits no longer than an attempt may take,
// because a renewal may also be overdue only because the store of that lock does not answer. It returns false if ctx has ended.
func (e *Elector) afterRenewals(ctx context.Context) bool {
	again := e.cfg.Timing.Timeout / 4 // hundreds may wait, and each look takes a processor from the renewals
	for until := e.cfg.Clock().Add(min(e.cfg.Timing.Timeout, time.Second)); e.cfg.Beat.Overdue(e.cfg.Clock) && e.cfg.Clock() < until; {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(again):
		}
	}
	return ctx.Err() == nil
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

// await waits as long as the answer a makes another attempt pointless. It waits for a poll interval at most, because hints can be lost and
// only polls are reliable. It reports whether a hint ended the wait early.
func (e *Elector) await(ctx context.Context, a Answer, deferring bool) (hinted bool) {
	poll := e.cfg.PollInterval
	if a.Outcome == Held && a.Holder != "" && e.cfg.Hinted() { // foreign clients give no hints
		poll = max(poll, min(hintedPolls*poll, hintedPoll))
	}
	began := e.cfg.Clock()
	wait := e.coolDown.within(began, min(a.Left+expirySlack, poll)+rand.N(pollJitter))
	if deferring && e.since.free {
		// The wait ends with the acquire delay, because there may be no other node. If no delay is left, the next attempt follows at once.
		wait = min(wait, e.acquireDelayLeft())
	}
	if !e.pause(ctx, wait) {
		return false
	}
	// hintSpacing keeps a flood of hints from causing an attempt for each hint.
	early := hintSpacing - e.cfg.Clock().Sub(began)
	if e.cfg.HintSpread > 0 {
		early = max(early, rand.N(e.cfg.HintSpread))
	}
	e.gather(ctx, early)
	return true
}

// gather waits for further hints for the time d, so that one attempt answers all of these hints.
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

// known records the contents of the answer a: the holder of the lock, or the reason why no node may take the lock. It reports changes of
// these facts.
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

// giveBack releases a lock that a request of this node has taken, or may have taken, although no term has begun.
func (e *Elector) giveBack(ctx context.Context, owner string) {
	// If the release is not confirmed, the lease runs out. contact has reported the reason.
	_ = e.release(ctx, owner, Handover{Event: string(EventReleased), Reason: "the term did not begin"})
}

// newBackoff returns the pauses between attempts while the store does not answer. They grow from 100 ms to 5 s, and there is no last
// attempt. With a short TTL the pause including jitter stays below the TTL. So when the store answers again, a node leads within the length
// of one lease.
func newBackoff(ttl time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = 100 * time.Millisecond
	b.MaxInterval = min(5*time.Second, ttl/2)
	b.Multiplier = 2
	b.RandomizationFactor = 0.5
	return b
}
