package job

import (
	"context"
	"errors"
	"fmt"
)

// The errors of orders, matched by errors.Is.
var (
	// ErrUnknown: this node has no such job.
	ErrUnknown = errors.New("job: unknown")
	// ErrRunning: a run of the job goes on.
	ErrRunning = errors.New("job: running already")
)

// Manual is a run requested by an operator.
type Manual struct {
	Job string
	ID  string // of the run and of its request in the ledger
	By  string // requester and reason: "by alice: end of month"
	// Force runs it regardless of the job's Overlap.
	Force bool
}

// RunNow starts a run of a job outside its schedule, under the ID of its request in the ledger,
// so that it happens once across all nodes. It returns when the ledger has answered: nil if the
// run has begun, else an error such as [ErrUnknown], [ErrRunning], [ErrPaused] or
// [ErrSlotTaken]. It may wait for other runs, by the job's Overlap or for room. If ctx ends
// first the run does not begin, unless its claim is under way; calling again with the same ID
// is safe and shows which.
//
// An "@always" job has one run only, forced or not.
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

// Cancelled is the outcome of an order to cancel.
type Cancelled struct {
	// Runs are the IDs of the cancelled runs and of dropped manual ones. The runs may not have
	// ended yet.
	Runs []string
	// Retry is the dropped attempt of a run whose work had failed while its result was on its
	// way to the ledger; 0: none.
	Retry int
}

// Cancel ends a run of a job; with "" for its ID, all runs, waiting ones and retrials included.
// why continues the word "cancelled": "by alice: wrong input". It does not return a run that
// does not exist or whose work has returned. [ErrUnknown] if this node has no such job,
// [ErrNotLeader] without a term.
func (r *Runner) Cancel(ctx context.Context, job, runID, why string) (Cancelled, error) {
	done := make(chan Cancelled, 1) // read after the order is answered
	err := r.order(ctx, func(s *session, reply chan<- error) {
		p := s.jobs[job] // also a removed job while a run of it goes on
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

// errCancelled begins the cause of a run that an operator has cancelled.
var errCancelled = errors.New("cancelled")

// Paused reports that the ledger has paused a job, with the reason, or with "" that the job is
// not paused. It may be called repeatedly. It matters for "@always" jobs: a pause ends their
// run, and they restart at once after it. Runs of other jobs end by themselves, and the ledger
// refuses their slots.
func (r *Runner) Paused(ctx context.Context, job, reason string) error {
	return r.order(ctx, func(s *session, reply chan<- error) {
		p, err := s.find(job)
		if err == nil {
			s.hand(p, func(m *machine) { m.pausedBy(reason) })
		}
		reply <- err
	})
}

// find returns a configured job.
func (s *session) find(name string) (*scheduledJob, error) {
	if p := s.jobs[name]; p != nil && !p.removed {
		return p, nil
	}
	return nil, fmt.Errorf("job %q: %w", name, ErrUnknown)
}

// order runs a function in the loop of the running term and waits for its reply; there is at
// most one. [ErrNotLeader] without a term.
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
