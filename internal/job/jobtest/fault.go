package jobtest

import (
	"context"
	"time"

	"baton/internal/job"
)

// Op names a call, so that a test can decide which calls to disturb.
type Op string

// These are the calls of a job.Ledger.
const (
	OpResumeStates Op = "standings"
	OpClaim        Op = "claim"
	OpClaimIdle    Op = "claim idle"
	OpFinish       Op = "finish"
	OpMiss         Op = "miss"
)

// Fault says what happens to one call.
type Fault struct {
	Delay     time.Duration // time until the request arrives; it arrives even if the caller has gone
	Lost      bool          // the request never arrives
	ReplyLost bool          // the request is executed, but the caller does not receive the reply
}

// carry passes a request to the ledger and returns the answer, with the faults of the test. A request whose caller has given up is
// still executed when it arrives.
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
