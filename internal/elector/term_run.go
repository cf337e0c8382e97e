package elector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"baton/internal/heartbeat"
)

// ending describes why and how a term ends.
type ending struct {
	cause    error // the cause of the end of the work's context
	event    EventKind
	reason   string
	code     Code
	to       string
	coolDown time.Duration // how long this node lets others go first after the term
	firm     bool          // the cool-down lasts even if others have led
	over     <-chan struct{}
}

// runTerm runs the work of one term. When the work has returned and the lock is released, it returns the cool-down that follows.
//
// The following sequence is essential: the work's context ends first; the lease is renewed until the work has returned; only then is the
// lock released.
func (e *Elector) runTerm(ctx context.Context, term *Term) coolDown {
	e.setRole(term, e.cfg.NodeID)
	e.cfg.Observe(Event{Kind: EventWon, Owner: term.owner, Epoch: term.Epoch(), Holder: e.cfg.NodeID, Lease: e.cfg.Timing.TTL})
	if !term.Trusted() { // the observer writes a file, and a disk may hang
		return e.conclude(ctx, term, leaseEnded(false), nil)
	}

	// The work must not see that ctx itself ends, because the work would not know the cause.
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	keepers, stopKeepers := context.WithCancel(context.WithoutCancel(ctx))
	defer stopKeepers()

	worked := make(chan error, 1)
	go func() { worked <- e.work(work, term) }()

	ends := make(chan ending, 4) // one for each of the senders below
	var wg sync.WaitGroup
	wg.Go(func() { e.keep(keepers, term, ends) })
	wg.Go(func() {
		term.window.Guard(keepers,
			func() {
				close(term.closed)
				ends <- leaseEnded(term.window.Lost())
			},
			func() {
				if !term.working.bar() {
					e.cfg.Die(fmt.Sprintf("the work of epoch %d has not returned by the end of its trust window", term.Epoch()))
				}
			})
	})

	end, err := e.attend(ctx, term, ends, worked, stop)
	stopKeepers()
	wg.Wait()
	e.floor = max(e.floor, term.Epoch())
	e.lease.heard(e.cfg.Timing.TTL, e.cfg.Clock())
	return e.conclude(ctx, term, end, err)
}

// work runs the LeadFunc. On a host without free processors, the term may already be over when this goroutine starts to run.
func (e *Elector) work(ctx context.Context, term *Term) error {
	if e.cfg.Counts {
		return e.lead(ctx, term)
	}
	if !term.Begin() {
		<-ctx.Done() // the guard ends the term
		return nil
	}
	defer term.End()
	return e.lead(ctx, term)
}

// kickSpacing is the minimum time between two renewals that are caused by hints. Any client of the store can forge hints, which must not
// make the leader renew without a pause.
const kickSpacing = 50 * time.Millisecond

// attend waits until the work has returned. It cancels the work as soon as there is a reason to end the term. It returns the first such
// reason, and the error that the work has returned.
func (e *Elector) attend(
	ctx context.Context, term *Term, ends <-chan ending, worked <-chan error, stop context.CancelCauseFunc,
) (ending, error) {
	var end ending
	shutdown := ctx.Done()
	var kick <-chan time.Time // when to renew because of a hint
	kicked := e.cfg.Clock() - heartbeat.Instant(kickSpacing)
	for {
		var next ending
		select {
		case err := <-worked:
			switch {
			case end.cause != nil:
			case ctx.Err() != nil:
				end = shutDown(ctx)
			default:
				end = workEnded(err, e.stepDownCoolDown())
			}
			return end, err
		case <-shutdown:
			shutdown = nil
			next = shutDown(ctx)
		case next = <-ends:
		case h := <-e.cfg.Hints:
			// An order may have come while hints were interrupted.
			if (h == HintControl || h == HintSubscribed) && kick == nil {
				kick = time.After(kickSpacing - e.cfg.Clock().Sub(kicked))
			}
			continue
		case <-kick:
			kick, kicked = nil, e.cfg.Clock()
			e.renewNow()
			continue
		}
		switch {
		case end.cause == nil:
			end = next
			// The work is cancelled before the observer is called, because an observer may hang.
			stop(next.cause)
			e.cfg.Observe(Event{Kind: EventStopping, Owner: term.owner, Epoch: term.Epoch(), Reason: next.reason})
		case next.event != end.event && (next.event == EventLost || next.event == EventExpired):
			// If the lease ends during the drain, the term ends with the event of the lease's end.
			end.event, end.reason, end.code = next.event, next.reason+" while "+end.reason, next.code
		}
	}
}

// keep renews the lease of the term. If an answer of the lock is a reason to end the term, keep sends this reason to the channel ends.
func (e *Elector) keep(ctx context.Context, term *Term, ends chan<- ending) {
	ordered := false
	renew := func(ctx context.Context) error {
		order, err := e.lock.Renew(ctx, term.owner, term.Epoch())
		if err == nil && order.StepDown && !ordered {
			ordered = true
			ends <- ending{
				cause: ErrSteppedDown, event: EventSteppedDown, reason: order.Reason,
				code: order.Code, to: order.To, coolDown: e.stepDownCoolDown(),
			}
		}
		return err
	}
	observe := func(a heartbeat.Attempt) {
		e.contact(a.Err)
		e.cfg.Observe(Event{Kind: EventRenewal, Epoch: term.Epoch(), Took: a.Took, Err: a.Err})
	}
	if err := heartbeat.Keep(ctx, term.window, renew, heartbeat.Options{Now: e.kick, Observe: observe, Beat: e.cfg.Beat}); err != nil {
		ends <- leaseEnded(errors.Is(err, heartbeat.ErrLost))
	}
}

// leaseEnded returns the ending of a term that ends because its lease was lost or has expired.
func leaseEnded(lost bool) ending {
	if lost {
		return ending{cause: ErrLeaseLost, event: EventLost, reason: "this node no longer holds the lock"}
	}
	return ending{cause: ErrTrustClosed, event: EventExpired, reason: "no renewal was answered in time"}
}

// conclude ends a term: it releases the lock, unless the lock is lost, and reports the end of the term.
func (e *Elector) conclude(ctx context.Context, term *Term, end ending, workErr error) coolDown {
	var err error
	if end.event != EventLost {
		err = e.release(ctx, term.owner, Handover{Event: string(end.event), Reason: end.reason, Code: end.code, To: end.to})
	}
	e.setRole(nil, "")
	e.cfg.Observe(Event{
		Kind: end.event, Owner: term.owner, Epoch: term.Epoch(), Reason: end.reason, Code: end.code,
		Err: errors.Join(workErr, err), Released: err == nil,
	})
	if end.coolDown == 0 {
		return coolDown{}
	}
	return coolDown{until: e.cfg.Clock().Add(end.coolDown), over: end.over, firm: end.firm, epoch: term.Epoch()}
}

// release gives up the lock. If the release fails immediately it is tried once more, because the connection may have been cut since the
// last renewal. If a lock is not released, the other nodes must wait until its lease has ended.
func (e *Elector) release(ctx context.Context, owner string, h Handover) error {
	// ctx may have ended. The release must still be tried, with a time limit.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.Timing.Timeout)
	defer cancel()
	began := e.cfg.Clock()
	err := e.lock.Release(ctx, owner, h)
	if err != nil && e.cfg.Clock().Sub(began) < e.cfg.Timing.Timeout/2 {
		err = e.lock.Release(ctx, owner, h)
	}
	e.contact(err)
	return err
}

// shutDown returns the ending of a term that ends because the ctx of Run has ended.
func shutDown(ctx context.Context) ending {
	end := ending{cause: ErrShuttingDown, event: EventReleased, reason: ErrShuttingDown.Error()}
	if errors.Is(context.Cause(ctx), ErrDone) {
		end.reason = ErrDone.Error()
	}
	return end
}

// workEnded returns the ending of a term whose work returned before the term had to end.
func workEnded(err error, coolDown time.Duration) ending {
	end := ending{event: EventSteppedDown, reason: "the leader's work returned", coolDown: coolDown}
	var abdication *Abdication
	switch {
	case errors.As(err, &abdication):
		end.reason, end.code, end.coolDown = abdication.Reason, CodeAbdicated, max(coolDown, abdication.CoolDown)
		end.over, end.firm = abdication.Over, true
	case err != nil:
		end.reason = "the leader's work failed: " + err.Error()
	}
	return end
}

// stepDownCoolDown returns the length of the cool-down after a step-down. It is long enough for every live standby to ask once. A standby
// that relies on hints and has missed the hint may ask later.
func (e *Elector) stepDownCoolDown() time.Duration {
	return e.cfg.PollInterval + 2*pollJitter
}

func (e *Elector) renewNow() {
	select {
	case e.kick <- struct{}{}:
	default: // a renewal is already due
	}
}
