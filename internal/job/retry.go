package job

import (
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
)

// retryAt is when the slot of a run that went wrong is to be tried again; zero: it is
// not, or not before the job's next slot is due anyway.
func retryAt(j Job, rec Record, err error) time.Time {
	wrong := rec.State == StateFailed || rec.State == StateTimedOut
	_, pauses := errors.AsType[*PauseError](err)
	if !wrong || pauses || errors.Is(err, ErrNotLeader) ||
		rec.Trigger == TriggerManual || IsAlways(j.Schedule) || rec.Attempt > j.Retry.Limit {
		return time.Time{}
	}
	delay := j.Retry.delay(rec.Attempt)
	at := rec.Finished.Add(delay*4/5 + rand.N(max(1, delay*2/5))).Truncate(time.Millisecond)
	next := j.Schedule.Next(rec.Finished.Add(-j.Offset()))
	if !next.IsZero() && !at.Before(next.Add(j.Offset())) {
		return time.Time{}
	}
	return at
}

// delay is how long to wait after an attempt, before chance makes it more or less.
func (r Retry) delay(attempt int) time.Duration {
	const longest = 366 * 24 * time.Hour // what is beyond is beyond every schedule's next slot, or nobody's wish
	most := longest
	if r.MaxDelay > 0 {
		most = min(r.MaxDelay, longest)
	}
	delay := r.Delay
	for i := 1; i < attempt && delay < most; i++ {
		delay *= 2
	}
	return min(delay, most)
}

// tryAgain notes the retrial of a run that has ended, unless a later slot is on its way.
func (s *session) tryAgain(e *entry, rec Record) {
	if rec.RetryAt.IsZero() {
		return
	}
	r := &retrial{Retrial: Retrial{Slot: rec.Slot, Attempt: rec.Attempt + 1, At: rec.RetryAt}}
	switch {
	case e.removed:
		s.void(e, r.item(e), errRemoved)
	case e.job.Retry.Limit == 0:
		s.void(e, r.item(e), errNoRetry)
	case e.claimed.After(rec.Slot) || e.slotWaits() || !e.backlog.empty():
	default:
		e.retry = r
		s.log.Debug("the run is tried again", runFields(rec.Run, zap.Time("at", rec.RetryAt))...)
	}
}

// item is the run of a retrial.
func (r *retrial) item(e *entry) *item {
	return &item{
		run: Run{Slot: r.Slot, Trigger: TriggerRetry, Attempt: r.Attempt},
		due: latest(r.At, e.due(r.Slot)), rerun: r.rerun,
	}
}
