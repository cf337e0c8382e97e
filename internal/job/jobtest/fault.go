package jobtest

import (
	"context"
	"time"

	"baton/internal/job"
)

// Op names a call, for the decision which to disturb.
type Op string

// The calls of a job.Ledger.
const (
	OpStandings Op = "standings"
	OpClaim     Op = "claim"
	OpClaimIdle Op = "claim idle"
	OpFinish    Op = "finish"
	OpMiss      Op = "miss"
)

// Fault is what happens to one call.
type Fault struct {
	Delay     time.Duration // the request is under way for so long; it arrives even if the caller has gone
	Lost      bool          // it never arrives
	ReplyLost bool          // it is carried out, but the caller does not learn of it
}

// carry takes a request to the ledger and its answer back, with what befalls them. A
// request whose caller has given up is carried out all the same when it arrives.
func (l *Ledger) carry(ctx context.Context, op Op, run job.Run, apply func() error) error {
	var fault Fault
	if l.Disturb != nil {
		fault = l.Disturb(op, run)
	}
	if fault.Lost {
		if fault.Delay == 0 {
			return ErrUnreachable
		}
		return wait(ctx, fault.Delay)
	}
	answer := make(chan error, 1)
	arrive := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		answer <- apply()
	}
	if fault.Delay == 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		arrive()
	} else {
		time.AfterFunc(fault.Delay, arrive)
	}
	select {
	case err := <-answer:
		if fault.ReplyLost {
			return ErrUnreachable
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ErrUnreachable
	case <-ctx.Done():
		return ctx.Err()
	}
}
