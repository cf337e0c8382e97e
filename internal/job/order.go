package job

import (
	"context"
	"errors"
	"fmt"
	"time"
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

// RunNow starts a run of a job outside its schedule, under an ID that the ledger has
// been told of beforehand, so that it happens once over all nodes. It returns when the
// ledger has answered: nil if the run goes on, and else why it does not, such as
// [ErrUnknown], [ErrRunning], [ErrPaused] or [ErrSlotTaken]. That may take as long as
// a run that it waits for, by the job's Overlap or for room. If ctx ends first, the
// run is not begun any more, and may be asked for again by the same ID; unless its
// claim is on its way, which asking again will tell.
//
// A job that runs all the time has one run only, forced or not.
func (r *Runner) RunNow(ctx context.Context, m Manual) error {
	return r.order(ctx, func(s *session, reply chan<- error) {
		e, err := s.find(m.Job)
		if err != nil {
			reply <- err
			return
		}
		s.runNow(ctx, e, m, reply)
	})
}

func (s *session) runNow(ctx context.Context, e *entry, m Manual, reply chan<- error) {
	for _, f := range e.flights {
		switch {
		case f.run.ID != m.ID:
		case f.answered:
			reply <- nil // it goes on
			return
		default:
			f.replies = append(f.replies, reply)
			return
		}
	}
	for _, it := range e.line {
		if it.run.ID == m.ID {
			it.ctx, it.reply = ctx, reply
			return
		}
	}
	now := s.now()
	it := &item{
		run: Run{ID: m.ID, Slot: now, Trigger: TriggerManual, Attempt: 1, By: m.By, Forced: m.Force},
		due: now, ctx: ctx, reply: reply,
	}
	switch why, v := s.judge(e, it); v {
	case starts:
		if e.always() {
			e.next = time.Time{} // it was to be started again later
		}
		s.begin(e, it)
		s.requeue(e)
	case waits:
		e.line = append(e.line, it)
		s.advance(e)
	case refused:
		s.refuse(e, it, why)
	}
}

// Cancel ends a run of a job, and with "" for its ID all of them, and what waits or is
// to be retried. Why reads on from "cancelled": "by alice: wrong input". It returns the
// IDs of the runs that it has told to end, which need not have ended yet; a run that
// is not there is none of them.
func (r *Runner) Cancel(ctx context.Context, job, runID, why string) ([]string, error) {
	ids := make(chan []string, 1) // read after the order is answered
	err := r.order(ctx, func(s *session, reply chan<- error) {
		e := s.entries[job] // also one that is no longer configured, while a run of it goes on
		if e == nil {
			reply <- fmt.Errorf("job %q: %w", job, ErrUnknown)
			return
		}
		ids <- s.cancel(e, runID, fmt.Errorf("%w %s", errCancelled, why))
		reply <- nil
	})
	if err != nil {
		return nil, err
	}
	return <-ids, nil
}

// errCancelled is the beginning of the cause by which an operator's wish ends a run.
var errCancelled = errors.New("cancelled")

func (s *session) cancel(e *entry, runID string, cause error) []string {
	var ids []string
	for _, f := range e.flights {
		if !f.void && (runID == "" || f.run.ID == runID) {
			f.cancel(cause)
			ids = append(ids, f.run.ID)
		}
	}
	kept := e.line[:0:0]
	for _, it := range e.line {
		if !it.manual() || runID != "" && it.run.ID != runID {
			kept = append(kept, it)
			continue
		}
		answer(it.reply, cause)
		ids = append(ids, it.run.ID)
	}
	e.line = kept
	if runID == "" {
		s.giveUpSlots(e)
		s.giveUpRetry(e, cause, false)
	}
	s.advance(e)
	return ids
}

// giveUpRetry takes what is to be tried again away, here and from the ledger; but, if
// those are kept, not what is run again because it was lost.
func (s *session) giveUpRetry(e *entry, why error, keepReruns bool) {
	if e.retry != nil && !(keepReruns && e.retry.rerun) {
		e.line, e.retry = append(e.line, e.retry.item(e)), nil
	}
	kept := e.line[:0:0]
	for _, it := range e.line {
		if !it.retried() || keepReruns && it.rerun {
			kept = append(kept, it)
			continue
		}
		s.void(e, it, why)
	}
	e.line = kept
}

// Paused tells that the ledger has a job paused, and why; or with "" that it has not.
// It may be told again and again. What it concerns is a job that runs all the time:
// its run is ended by a pause, and started at once after it. For other jobs nothing
// is to be done here: their runs are allowed to end, and the ledger refuses their slots.
func (r *Runner) Paused(ctx context.Context, job, reason string) error {
	return r.order(ctx, func(s *session, reply chan<- error) {
		e, err := s.find(job)
		if err == nil {
			s.pausedBy(e, reason)
		}
		reply <- err
	})
}

func (s *session) pausedBy(e *entry, reason string) {
	switch {
	case !e.always():
	case reason != "":
		for _, f := range e.flights {
			f.cancel(fmt.Errorf("%w %s", ErrPaused, reason))
		}
	case e.paused && !e.busy():
		s.atOnce(e)
	}
	e.paused = reason != ""
}

// find returns a job that is configured.
func (s *session) find(name string) (*entry, error) {
	if e := s.entries[name]; e != nil && !e.removed {
		return e, nil
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
		if s.ctx.Err() != nil {
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
