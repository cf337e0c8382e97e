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

// Manual is a run that somebody asks for.
type Manual struct {
	Job string
	ID  string // the run's, under which the ledger was told of it beforehand
	By  string // who asks, and why: "by alice: end of month"
	// Force has it run whatever the job's Overlap is.
	Force bool
}

// order is what an operator asks of the running term: the loop does it, and answers.
type order struct {
	job    string
	do     func(*session, *entry, chan<- error)
	answer chan error // has room for the one answer
}

// RunNow starts a run of a job outside its schedule, under an ID that the ledger has
// been told of beforehand, so that it happens once over all nodes. It returns when the
// ledger has answered: nil if the run goes on, and else why it does not, such as
// [ErrUnknown], [ErrRunning], [ErrPaused] or [ErrSlotTaken].
func (r *Runner) RunNow(ctx context.Context, m Manual) error {
	return r.order(ctx, m.Job, func(s *session, e *entry, answer chan<- error) {
		if e.busy {
			answer <- fmt.Errorf("start job %q: %w", m.Job, ErrRunning)
			return
		}
		if e.always() {
			s.dequeue(e) // it was to be started again later
		}
		s.begin(e, Run{ID: m.ID, Slot: wallNow(), Trigger: TriggerManual, By: m.By, Forced: m.Force}, func(err error) { answer <- err })
	})
}

// Cancel ends a run of a job, and with "" for its ID all of them and what waits or is
// to be retried. It returns the IDs of the runs that it told to end; they have not
// returned yet.
func (r *Runner) Cancel(ctx context.Context, job, runID, why string) ([]string, error) {
	return nil, r.order(ctx, job, func(_ *session, _ *entry, answer chan<- error) { answer <- errors.ErrUnsupported })
}

// Update replaces what the running term has to do. [ErrNotLeader] if there is none.
func (r *Runner) Update(_ context.Context, w Workload) error {
	if err := validate(w.Jobs); err != nil {
		return err
	}
	return errors.ErrUnsupported
}

// Paused tells that the ledger has a job paused, and why; or with "" that it has not.
// It may be told again and again. What it concerns is a job that runs all the time:
// its run is ended by a pause, and started at once after it. For other jobs nothing
// is to be done here: their runs are allowed to end, and the ledger refuses their slots.
func (r *Runner) Paused(ctx context.Context, job, reason string) error {
	return r.order(ctx, job, func(s *session, e *entry, answer chan<- error) {
		switch {
		case !e.always():
		case reason != "" && e.busy:
			e.cancel(fmt.Errorf("%w %s", ErrPaused, reason))
		case reason == "" && e.paused && !e.busy:
			s.dequeue(e)
			e.next, e.wait = wallNow(), 0
			s.enqueue(e)
		}
		e.paused = reason != ""
		answer <- nil
	})
}

// order has the loop of the running term do something. [ErrNotLeader] if there is none.
func (r *Runner) order(ctx context.Context, job string, do func(*session, *entry, chan<- error)) error {
	r.mu.Lock()
	s := r.session
	r.mu.Unlock()
	if s == nil {
		return ErrNotLeader
	}
	o := order{job: job, do: do, answer: make(chan error, 1)}
	select {
	case s.orders <- o:
	case <-s.ctx.Done():
		return ErrNotLeader
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-o.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// obey carries an order out.
func (s *session) obey(o order) {
	for _, e := range s.entries {
		if e.job.Name == o.job {
			o.do(s, e, o.answer)
			return
		}
	}
	o.answer <- fmt.Errorf("job %q: %w", o.job, ErrUnknown)
}
