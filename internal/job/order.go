package job

import (
	"context"
	"errors"
	"fmt"
)

// Errors that an order is answered with, matched by errors.Is.
var (
	// ErrUnknown: this node has no such job.
	ErrUnknown = errors.New("job: unknown")
	// ErrRunning: a run of the job goes on.
	ErrRunning = errors.New("job: running already")
)

// Manual is a run that an operator asks for.
type Manual struct {
	Job string
	ID  string // the run's, under which the ledger has the request
	By  string // who asks, and why: "by alice: end of month"
	// Force has it run whatever the job's Overlap is.
	Force bool
}

// RunNow starts a run of a job outside its schedule, under an ID that the ledger has
// recorded beforehand, so that it happens once over all nodes. It returns when the
// ledger has answered: nil if the run goes on, and else why it does not, such as
// [ErrUnknown], [ErrRunning], [ErrPaused] or [ErrSlotTaken]. That may take as long as
// a run that it waits for, by the job's Overlap or for room. If ctx ends first, the
// run is not begun any more, and may be asked for again by the same ID; unless its
// claim is on its way, which asking again will show.
//
// A job that runs all the time has one run only, forced or not.
func (r *Runner) RunNow(ctx context.Context, m Manual) error {
	return r.order(ctx, func(s *session, reply chan<- error) {
		p, err := s.find(m.Job)
		if err != nil {
			reply <- err
			return
		}
		s.hand(p, func(j *machine) { j.runNow(ctx, m, reply) })
	})
}

// Cancelled is what an order to cancel has stopped.
type Cancelled struct {
	// Runs are the IDs of the runs that are ended, and of manual ones that waited. Those need
	// not have ended yet.
	Runs []string
	// Retry is the attempt that will not be made of a run whose work had failed, while its end
	// was on its way to the ledger; 0: none.
	Retry int
}

// Cancel ends a run of a job, and with "" for its ID all of them, and what waits or is
// to be retried. Why reads on from "cancelled": "by alice: wrong input". A run that is not
// there, or whose work has returned already, is not among those that it returns.
// [ErrUnknown] if this node has no such job, and [ErrNotLeader] if there is no term.
func (r *Runner) Cancel(ctx context.Context, job, runID, why string) (Cancelled, error) {
	done := make(chan Cancelled, 1) // read after the order is answered
	err := r.order(ctx, func(s *session, reply chan<- error) {
		p := s.jobs[job] // also one that is no longer configured, while a run of it goes on
		if p == nil {
			reply <- fmt.Errorf("job %q: %w", job, ErrUnknown)
			return
		}
		s.hand(p, func(m *machine) { done <- m.cancel(runID, fmt.Errorf("%w %s", errCancelled, why)) })
		reply <- nil
	})
	if err != nil {
		return Cancelled{}, err
	}
	return <-done, nil
}

// errCancelled is the beginning of the cause by which an operator's wish ends a run.
var errCancelled = errors.New("cancelled")

// Paused takes note that the ledger has a job paused, and why; or with "" that it has not.
// It may be called again and again. What it concerns is a job that runs all the time:
// its run is ended by a pause, and started at once after it. For other jobs nothing
// is to be done here: their runs are allowed to end, and the ledger refuses their slots.
func (r *Runner) Paused(ctx context.Context, job, reason string) error {
	return r.order(ctx, func(s *session, reply chan<- error) {
		p, err := s.find(job)
		if err == nil {
			s.hand(p, func(m *machine) { m.pausedBy(reason) })
		}
		reply <- err
	})
}

// find returns a job that is configured.
func (s *session) find(name string) (*place, error) {
	if p := s.jobs[name]; p != nil && !p.removed {
		return p, nil
	}
	return nil, fmt.Errorf("job %q: %w", name, ErrUnknown)
}

// order has the loop of the running term do something, and waits for the reply, of
// which there is one at most. [ErrNotLeader] if there is no term.
func (r *Runner) order(ctx context.Context, do func(*session, chan<- error)) error {
	r.mu.Lock()
	s := r.session
	r.mu.Unlock()
	if s == nil {
		return ErrNotLeader
	}
	reply := make(chan error, 1)
	obey := func() {
		if s.ctx.Err() != nil || s.closing != nil {
			reply <- ErrNotLeader
			return
		}
		do(s, reply)
	}
	select {
	case s.events <- obey:
	case <-s.ctx.Done():
		return ErrNotLeader
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
