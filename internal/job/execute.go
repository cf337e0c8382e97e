package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"baton/internal/job/schedule"
)

// execution is the goroutine of a run. It claims the run, does the work and records the result.
type execution struct {
	s     *session // this goroutine uses only the parts that are safe in any goroutine
	f     *activeRun
	place *scheduledJob

	ctx      context.Context
	cancel   context.CancelCauseFunc
	asks     context.Context // ends when the claim must no longer be requested
	withdraw context.CancelFunc
	limiter  StartLimiter // the session's limiter; the run waits there for its turn
	acquired atomic.Bool  // the run has a turn
	acting   bool         // owned by the loop: the claim is being requested, or the work is running
	idle     *Record      // the result, if the run had nothing to do
	said     error        // the error of ClaimIdle; nil: granted, or not called
}

// run claims the run, does the work and records the result.
func (x *execution) run() {
	s, f := x.s, x.f
	err := x.claim()
	if errors.Is(err, ErrDone) && x.idle != nil {
		idleCandidates{x}.end(s)
		return
	}
	if !x.mayStart(err) {
		return
	}
	defer x.leave()
	began := time.Now()
	rec := Record{Run: f.run, Started: s.now()}
	err = x.work(&rec)
	x.leave() // frees the turn of a process that could not be started
	rec.Finished = s.now()
	_, pauses := errors.AsType[*PauseError](err)
	rec.Pauses = pauses && rec.State == StateFailed
	rec.RetryAt = retryAt(f.job, rec, err)
	s.post(func() {
		s.rest(x) // from now on the run is only recorded
		s.hand(x.place, func(*machine) { f.returned, f.again = true, !rec.RetryAt.IsZero() })
	})
	s.cfg.OnFinish(rec)
	s.reports.run(&x.place.failures, rec, err)
	unrecorded := x.record(rec)
	lasted := time.Since(began)
	s.post(func() { s.hand(x.place, func(m *machine) { m.settle(f, rec, unrecorded, lasted, err) }) })
}

// mayStart sends the ledger's answer to the loop, and returns when the loop has received this answer. From then on the run counts as begun.
// mayStart reports whether the claim was granted.
func (x *execution) mayStart(err error) bool {
	heard := make(chan struct{})
	x.s.events <- func() {
		x.s.hand(x.place, func(m *machine) { m.answered(x.f, err) })
		close(heard)
	}
	<-heard
	return err == nil
}

// claim asks the ledger for the slot until it gets an answer, the next slot is due,
// the starting deadline has passed, or the term ends.
//
// A retry is safe although the outcome of a failed attempt is unknown, because a slot is granted to one run only. If the failed attempt
// was granted and the ledger has lost the run, the answer is ErrSlotTaken, and the slot is lost rather than run twice.
func (x *execution) claim() error {
	s, f, unknown := x.s, x.f, x.said
	if unknown != nil && conclusive(unknown) {
		return unknown
	}
	for delay := retryMin; ; delay = min(2*delay, retryMax) {
		if err := x.awaitTurn(); err != nil {
			if errors.Is(err, ErrHeldBack) {
				s.cfg.OnAttempt(f.run.Job, err)
			}
			return cmp.Or(unknown, err)
		}
		ctx, cancel := context.WithTimeout(x.asks, s.cfg.ClaimTimeout)
		err := s.ledger.Claim(ctx, f.run)
		cancel()
		s.cfg.OnAttempt(f.run.Job, err)
		if err == nil && x.limiter == s.processLimiter {
			time.AfterFunc(longestStart, x.leave)
			return nil // the run keeps its turn until its process has begun
		}
		x.leave()
		switch {
		case errors.Is(err, ErrSlotTaken) && unknown != nil:
			// The error is not wrapped, because the slot must count as missed: the earlier claim may be our own.
			return fmt.Errorf("%v, maybe claimed by an attempt of this run without an answer: %w", err, unknown) //nolint:errorlint // above
		case conclusive(err):
			return err
		}
		unknown = err
		if stopped := pause(x.asks, delay); stopped != nil {
			return stopped
		}
		if !f.giveUp.IsZero() && !s.now().Before(f.giveUp) {
			return unknown
		}
	}
}

func (x *execution) work(rec *Record) error {
	s, ctx, j := x.s, x.ctx, x.f.job
	if j.Timeout > 0 && !schedule.IsAlways(j.Schedule) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, j.Timeout, ErrTimeout)
		defer cancel()
	}
	// During the claim the term may have ended, or an operator may have cancelled the run. The slot is then lost.
	if ctx.Err() != nil {
		rec.State, rec.Error = StateCancelled, fmt.Sprintf("not started: %v", context.Cause(ctx))
		return nil
	}
	s.noteStart(rec.Run, rec.Started)
	defer s.noteEnd(rec.Run)
	s.cfg.OnStart(rec.Run)
	var err error
	rec.Result, err = call(withBegun(ctx, x.leave), j.Run, rec.Run)
	rec.State, rec.Error = outcome(ctx, j, err)
	return err
}

// recordWithin returns the time limit for recording a result. After the term's end little time is left, and a run that took long to end
// has used some of that time.
func (x *execution) recordWithin() time.Duration {
	within := x.s.cfg.FinishTimeout
	if over := x.s.over.Load(); over != nil {
		return max(within-time.Since(*over), within/4)
	}
	return within
}

// record records how the run ended. It also does so after the term's end, because operators ask about the runs that the term's end has
// cancelled. It does not retry for long, because the outbox retries.
func (x *execution) record(rec Record) error {
	s, f := x.s, x.f
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), x.recordWithin())
	defer cancel()
	for delay := retryMin; ; delay = min(2*delay, retryMax) {
		err := s.ledger.Finish(ctx, rec)
		s.cfg.OnAttempt(rec.Job, err)
		if err == nil {
			return nil
		}
		if pause(ctx, delay) == nil {
			continue
		}
		if s.ctx.Err() == nil {
			s.log.Debug("cannot record a run's result; retrying", runFields(rec.Run, zap.Error(err))...)
			s.outbox.record(rec, func(err error) { s.recordedLate(f, rec, err) })
			return err
		}
		s.log.Log(s.reports.loud(zapcore.WarnLevel, err), "cannot record a run's result; it will be missing in the history",
			runFields(rec.Run, zap.String("state", string(rec.State)), zap.Error(err))...)
		return err
	}
}

// recordedLate schedules the retrial of a run whose result the ledger did not accept at once. The loop calls it when the outbox has
// recorded the result.
func (s *session) recordedLate(f *activeRun, rec Record, err error) {
	if p := s.jobs[rec.Job]; p != nil && err == nil {
		s.hand(p, func(m *machine) {
			m.tryAgain(f, rec)
			m.advance()
		})
	}
}

// outcome turns the error of a run into its state and the text for the history. A cancellation has priority over the error of the work.
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
		return StateCancelled, clip(cause.Error()) // the run stopped as ordered; where it stopped is no error
	default:
		return StateCancelled, clip(because(cause.Error(), err.Error()))
	}
}

// The function because joins the cause of a cancellation and the error of the work. The error often repeats the cause, because work that
// waits returns the cause.
func because(cause, said string) string {
	switch {
	case said == "" || said == cause:
		return cause
	case strings.HasPrefix(said, cause+": "):
		return said
	}
	return cause + ": " + said
}

func runFields(run Run, more ...zap.Field) []zap.Field {
	return append([]zap.Field{
		zap.String("job", run.Job), zap.String("run_id", run.ID), zap.Int("attempt", run.Attempt),
	}, more...)
}
