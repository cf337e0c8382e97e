package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// execute is the life of one slot, in a goroutine of its own: claim, run, record. It
// tells how the claim went.
func (s *session) execute(ctx context.Context, e *entry, run Run, tell func(error)) {
	end := ending{entry: e, run: run}
	// Deferred, because the loop waits for it even if the work ends this goroutine.
	defer func() { s.ended <- end }()

	err := s.claim(run, e.job)
	tell(err)
	switch {
	case err == nil:
	case errors.Is(err, ErrNotLeader):
		end.fatal = fmt.Errorf("claim a slot of job %q: %w", run.Job, err)
		return
	case errors.Is(err, ErrSlotTaken) || s.ctx.Err() != nil:
		s.log.Debug("the slot is not ours to run", runFields(run, zap.Time("slot", run.Slot), zap.Error(err))...)
		return
	default:
		end.unclaimed = err
		return
	}
	end.claimed = true
	e.claimed.Store(true)
	began := time.Now()
	if err := s.perform(ctx, e, run); errors.Is(err, ErrNotLeader) {
		end.fatal = fmt.Errorf("job %q: %w", run.Job, err)
	}
	end.lasted = time.Since(began)
}

// claim asks the ledger for the slot until it gets an answer, the next slot is due,
// the starting deadline has passed, or the term ends.
//
// Asking again is safe although the outcome of a failed attempt is unknown: only one
// attempt for a slot is ever granted, unless it is this very run that asks again. If
// the failed one was, and the ledger does not know us, the answer is ErrSlotTaken, and
// the slot is lost rather than run twice.
func (s *session) claim(run Run, j Job) error {
	giveUp := j.Schedule.Next(run.Slot)
	if deadline := run.Slot.Add(j.StartingDeadline); j.StartingDeadline > 0 && (giveUp.IsZero() || deadline.Before(giveUp)) {
		giveUp = deadline
	}
	var unknown error
	for delay := retryMin; ; delay = min(2*delay, retryMax) {
		ctx, cancel := context.WithTimeout(s.ctx, s.cfg.ClaimTimeout)
		err := s.ledger.Claim(ctx, run)
		cancel()
		switch {
		case err == nil || errors.Is(err, ErrNotLeader) || errors.Is(err, ErrPaused):
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
		if !giveUp.IsZero() && !wallNow().Before(giveUp) {
			return unknown
		}
	}
}

// perform does the work of a claimed slot and records how it ended. It returns the
// error of the work.
func (s *session) perform(ctx context.Context, e *entry, run Run) error {
	rec := Record{Run: run, Started: wallNow()}
	err := s.work(ctx, e.job, &rec)
	rec.Finished = wallNow()
	_, pauses := errors.AsType[*PauseError](err)
	rec.Pauses = pauses && rec.State == StateFailed
	s.cfg.OnFinish(rec)
	s.report(&e.trouble, rec)
	s.record(rec)
	return err
}

func (s *session) work(ctx context.Context, j Job, rec *Record) error {
	if j.Timeout > 0 && !IsAlways(j.Schedule) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, j.Timeout, ErrTimeout)
		defer cancel()
	}
	// The term may have ended while the claim was under way. The slot is lost then.
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

// record tells the ledger, also when the term is over: the end of a term is just
// when somebody will ask what became of its runs.
func (s *session) record(rec Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.cfg.FinishTimeout)
	defer cancel()
	for delay := retryMin; ; delay = min(2*delay, retryMax) {
		err := s.ledger.Finish(ctx, rec)
		if err == nil {
			return
		}
		if pause(ctx, delay) != nil {
			s.log.Warn("cannot record how a run ended; the history will not know",
				runFields(rec.Run, zap.String("state", string(rec.State)), zap.Error(err))...)
			return
		}
	}
}

// outcome turns the error of a run into its state and the text for the history. What
// the work says counts only after the question whether it was told to stop.
func outcome(ctx context.Context, j Job, err error) (State, string) {
	cause := context.Cause(ctx)
	var panicked *panicError
	switch {
	case err == nil:
		return StateSucceeded, ""
	case cause == nil || errors.As(err, &panicked):
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
