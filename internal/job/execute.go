package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// execute is the life of one run, in a goroutine of its own: claim, run, record.
func (s *session) execute(f *flight) {
	err := s.claim(f)
	if !s.mayStart(f, err) {
		return
	}
	began := time.Now()
	rec, recorded, err := s.perform(f)
	s.events <- func() { s.settle(f, rec, recorded, time.Since(began), err) }
}

// mayStart tells the loop of the ledger's answer, and returns when it has been heard:
// from then on the run counts as begun.
func (s *session) mayStart(f *flight, err error) bool {
	heard := make(chan struct{})
	s.events <- func() {
		s.answered(f, err)
		close(heard)
	}
	<-heard
	return err == nil
}

// claim asks the ledger for the slot until it gets an answer, the next slot is due,
// the starting deadline has passed, or the term ends.
//
// Asking again is safe although the outcome of a failed attempt is unknown: only one
// attempt for a slot is ever granted, unless it is this very run that asks again. If
// the failed one was, and the ledger does not know us, the answer is ErrSlotTaken, and
// the slot is lost rather than run twice.
func (s *session) claim(f *flight) error {
	var unknown error
	for delay := retryMin; ; delay = min(2*delay, retryMax) {
		ctx, cancel := context.WithTimeout(s.ctx, s.cfg.ClaimTimeout)
		err := s.ledger.Claim(ctx, f.run)
		cancel()
		switch {
		case err == nil || errors.Is(err, ErrNotLeader) || errors.Is(err, ErrPaused) || errors.Is(err, ErrAhead):
			return err
		case errors.Is(err, ErrSlotTaken) && unknown == nil:
			return err
		case errors.Is(err, ErrSlotTaken):
			// Not wrapped: the slot counts as missed, since it may be our own claim.
			return fmt.Errorf("%v, maybe by an attempt of this run that got no answer: %w", err, unknown) //nolint:errorlint // see above
		}
		unknown = err
		if stopped := pause(s.ctx, delay); stopped != nil {
			return stopped
		}
		if !f.giveUp.IsZero() && !s.now().Before(f.giveUp) {
			return unknown
		}
	}
}

// perform does the work of a claimed run and records how it ended. It returns the
// record, whether the ledger has it, and the error of the work.
func (s *session) perform(f *flight) (Record, bool, error) {
	rec := Record{Run: f.run, Started: s.now()}
	err := s.work(f.ctx, f.job, &rec)
	rec.Finished = s.now()
	_, pauses := errors.AsType[*PauseError](err)
	rec.Pauses = pauses && rec.State == StateFailed
	rec.RetryAt = retryAt(f.job, rec, err)
	s.cfg.OnFinish(rec)
	s.report(&f.entry.trouble, rec)
	return rec, s.record(rec), err
}

func (s *session) work(ctx context.Context, j Job, rec *Record) error {
	if j.Timeout > 0 && !IsAlways(j.Schedule) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, j.Timeout, ErrTimeout)
		defer cancel()
	}
	// The term may have ended while the claim was under way, or an operator may have
	// cancelled the run. The slot is lost then.
	if ctx.Err() != nil {
		rec.State, rec.Error = StateCancelled, fmt.Sprintf("not started: %v", context.Cause(ctx))
		return nil
	}
	s.noteStart(rec.Run, rec.Started)
	defer s.noteEnd(rec.Run)
	s.cfg.OnStart(rec.Run)
	var err error
	rec.Result, err = call(ctx, j.Run, rec.Run)
	rec.State, rec.Error = outcome(ctx, j, err)
	return err
}

// recordWithin is how long the recording of an end may take. What is left of the term
// is short: a run that took its time to end has used up some of it.
func (s *session) recordWithin() time.Duration {
	within := s.cfg.FinishTimeout
	if over := s.over.Load(); over != nil {
		return max(within-time.Since(*over), within/4)
	}
	return within
}

// record tells the ledger, also when the term is over: the end of a term is just
// when somebody will ask what became of its runs. A job does not wait for long; the
// clerk goes on asking.
func (s *session) record(rec Record) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.recordWithin())
	defer cancel()
	for delay := retryMin; ; delay = min(2*delay, retryMax) {
		err := s.ledger.Finish(ctx, rec)
		if err == nil {
			return true
		}
		if pause(ctx, delay) == nil {
			continue
		}
		if s.ctx.Err() == nil {
			s.log.Debug("cannot record how a run ended; will try again", runFields(rec.Run, zap.Error(err))...)
			s.clerk.record(rec, func(err error) { s.recordedLate(rec, err) })
			return false
		}
		s.log.Warn("cannot record how a run ended; the history will not know",
			runFields(rec.Run, zap.String("state", string(rec.State)), zap.Error(err))...)
		return false
	}
}

// recordedLate has a run tried again whose end the ledger did not take at once.
func (s *session) recordedLate(rec Record, err error) {
	if e := s.entries[rec.Job]; e != nil && err == nil && s.ctx.Err() == nil {
		s.tryAgain(e, rec)
		s.advance(e)
	}
}

// outcome turns the error of a run into its state and the text for the history. What
// the work says counts only after the question whether it was told to stop.
func outcome(ctx context.Context, j Job, err error) (State, string) {
	cause := context.Cause(ctx)
	_, panicked := errors.AsType[*panicError](err)
	_, gone := errors.AsType[*goneError](err)
	switch {
	case err == nil:
		return StateSucceeded, ""
	case cause == nil || panicked || gone:
		return StateFailed, clip(err.Error())
	case errors.Is(cause, ErrTimeout):
		return StateTimedOut, clip(fmt.Sprintf("timed out after %v: %v", j.Timeout, err))
	case errors.Is(err, context.Canceled):
		return StateCancelled, clip(cause.Error()) // it did as it was told; where it was then is no fault
	default:
		return StateCancelled, clip(fmt.Sprintf("%v: %v", cause, err))
	}
}

func runFields(run Run, more ...zap.Field) []zap.Field {
	return append([]zap.Field{
		zap.String("job", run.Job), zap.String("run_id", run.ID), zap.Int("attempt", run.Attempt),
	}, more...)
}
