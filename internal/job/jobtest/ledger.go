// Package jobtest has what tests of job ledgers and of their callers share: a ledger
// in memory that fails on demand, and the suite that every job.Ledger must pass.
package jobtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"baton/internal/job"
)

// ErrUnreachable is what a Ledger answers with when it is told to fail.
var ErrUnreachable = errors.New("jobtest: the ledger is unreachable")

// Op names a call, for the decision which to disturb.
type Op string

// The calls of a job.Ledger.
const (
	OpStandings Op = "standings"
	OpClaim     Op = "claim"
	OpFinish    Op = "finish"
	OpMiss      Op = "miss"
)

// Fault is what happens to one call.
type Fault struct {
	Delay     time.Duration // the request is under way for so long; it arrives even if the caller has gone
	Lost      bool          // it never arrives
	ReplyLost bool          // it is carried out, but the caller does not learn of it
}

// Ledger is a job.Ledger in memory.
type Ledger struct {
	// Forgetful makes a claim asked again by its own run answer ErrSlotTaken.
	Forgetful bool
	// Disturb decides about each call; nil: all goes well. The run is zero for
	// OpStandings.
	Disturb func(Op, job.Run) Fault

	mu      sync.Mutex
	owner   string
	last    map[string]job.Run // job -> its last claimed slot
	running map[string]string  // job -> ID of the run that was granted last
	asked   map[string]string  // job -> ID that a manual run was asked for by
	paused  map[string]string  // job -> why
	granted []job.Run
	records []job.Record
}

var _ job.Ledger = (*Ledger)(nil)

// NewLedger returns an empty Ledger whose lock that owner holds.
func NewLedger(owner string) *Ledger {
	return &Ledger{
		owner: owner, last: make(map[string]job.Run), running: make(map[string]string),
		asked: make(map[string]string), paused: make(map[string]string),
	}
}

// SetOwner gives the lock to another owner; "" to nobody.
func (l *Ledger) SetOwner(owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owner = owner
}

// SetLast pretends that a slot was claimed long ago.
func (l *Ledger) SetLast(name string, slot time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last[name] = job.Run{Job: name, Slot: slot}
}

// Ask asks for a manual run of a job under an ID.
func (l *Ledger) Ask(name, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[name] = id
}

// Pause pauses a job; "" resumes it.
func (l *Ledger) Pause(name, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused[name] = reason
}

// Granted returns the claims that were granted, in order.
func (l *Ledger) Granted() []job.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.granted)
}

// Records returns the finished runs, in order.
func (l *Ledger) Records() []job.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.records)
}

// Standings implements job.Ledger.
func (l *Ledger) Standings(ctx context.Context, jobs []string) (map[string]job.Standing, error) {
	standings := make(map[string]job.Standing)
	err := l.carry(ctx, OpStandings, job.Run{}, func() error {
		for _, name := range jobs {
			if run, ok := l.last[name]; ok {
				standings[name] = job.Standing{Last: run.Slot}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return standings, nil
}

// Miss implements job.Ledger.
func (l *Ledger) Miss(context.Context, job.Term, job.Missed) error { return nil }

// Claim implements job.Ledger.
func (l *Ledger) Claim(ctx context.Context, r job.Run) error {
	return l.carry(ctx, OpClaim, r, func() error {
		if l.owner == "" || l.owner != r.Term.Owner {
			return fmt.Errorf("claim: %w", job.ErrNotLeader)
		}
		if !l.Forgetful && l.running[r.Job] == r.ID {
			return nil
		}
		if err := l.takeSlot(r); err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		l.running[r.Job] = r.ID
		l.granted = append(l.granted, r)
		return nil
	})
}

// takeSlot takes what a run needs: a slot, or that it was asked for.
func (l *Ledger) takeSlot(r job.Run) error {
	if r.Trigger == job.TriggerManual {
		switch {
		case l.asked[r.Job] != r.ID:
			return job.ErrSlotTaken
		case l.paused[r.Job] != "":
			return fmt.Errorf("%w %s", job.ErrPaused, l.paused[r.Job])
		}
		delete(l.asked, r.Job)
		return nil
	}
	last, known := l.last[r.Job]
	if known && !r.Slot.After(last.Slot) {
		return job.ErrSlotTaken
	}
	l.last[r.Job] = r
	if why := l.paused[r.Job]; why != "" {
		return fmt.Errorf("%w %s", job.ErrPaused, why)
	}
	return nil
}

// Finish implements job.Ledger.
func (l *Ledger) Finish(ctx context.Context, rec job.Record) error {
	return l.carry(ctx, OpFinish, rec.Run, func() error {
		if !slices.ContainsFunc(l.records, func(have job.Record) bool { return have.ID == rec.ID }) {
			l.records = append(l.records, rec)
			if rec.Pauses && l.running[rec.Job] == rec.ID {
				l.paused[rec.Job] = rec.Error
			}
			delete(l.running, rec.Job)
		}
		return nil
	})
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
