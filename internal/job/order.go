package job

import (
	"context"
	"errors"
	"fmt"
)

// RunNow, Cancel and Paused return these errors, which are matched by errors.Is.
var (
	// ErrUnknown means that this node has no such job.
	ErrUnknown = errors.New("job: unknown")
	// ErrRunning means that a run of the job is in progress.
	ErrRunning = errors.New("job: running already")
)

// Manual is a run requested by an operator.
type Manual struct {
	Job string
	ID  string // the ID of the run and of its request in the ledger
	By  string // requester and reason: "by alice: end of month"
	// Force runs the job regardless of its Overlap.
	Force bool
}

// RunNow starts a run of a job outside its schedule, under the ID of its request in the ledger, so that the run happens once across all
// nodes. It returns when the ledger has answered: nil if the run has begun, otherwise an error such as [ErrUnknown], [ErrRunning],
// [ErrPaused] or [ErrSlotTaken]. The run may have to wait for other runs because of the job's Overlap, or because of MaxConcurrent. If ctx
// ends first, the run does not begin, unless its claim is already in progress. Another call with the same ID is safe and shows whether the
// run has begun.
//
// An "@always" job never has more than one run, even if the run is forced.
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

// Cancelled is the outcome of [Runner.Cancel].
type Cancelled struct {
	// Runs are the IDs of the cancelled runs and of the dropped manual runs. The runs may not have ended yet.
	Runs []string
	// Retry is the number of the dropped attempt of a run whose work had failed, but whose result was not recorded yet. 0 means that no
	// attempt was dropped.
	Retry int
}

// Cancel ends a run of a job. If runID is "", it ends all runs, including waiting runs and retrials. The argument why continues the word
// "cancelled": "by alice: wrong input". The result does not contain a run that does not exist or whose work has returned. Cancel returns
// [ErrUnknown] if this node has no such job, and [ErrNotLeader] if there is no term.
func (r *Runner) Cancel(ctx context.Context, job, runID, why string) (Cancelled, error) {
	done := make(chan Cancelled, 1) // read after the order is answered
	err := r.order(ctx, func(s *session, reply chan<- error) {
		p := s.jobs[job] // also finds a removed job while a run of this job is in progress
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

// errCancelled is the beginning of the cause of a run that an operator has cancelled.
var errCancelled = errors.New("cancelled")

// Paused informs the Runner that a job is paused in the ledger, and why. An empty reason means that the job is not paused. Paused may be
// called repeatedly. It matters for "@always" jobs: a pause ends their run, and the jobs restart as soon as the pause ends. Runs of other
// jobs end by themselves, and the ledger refuses their slots.
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

// order runs a function in the loop of the running term and waits for its reply. The function sends at most one reply. order returns
// [ErrNotLeader] if there is no term.
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
