package job

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"baton/internal/job/plan"
	"baton/internal/job/schedule"
)

// retryAt is when the slot of a run that went wrong is to be tried again; zero: it is
// not, or not before the job's next slot is due anyway.
func retryAt(j Job, rec Record, err error) time.Time {
	wrong := rec.State == StateFailed || rec.State == StateTimedOut
	_, pauses := errors.AsType[*PauseError](err)
	if !wrong || pauses || errors.Is(err, ErrNotLeader) || rec.Trigger == TriggerManual || schedule.IsAlways(j.Schedule) {
		return time.Time{}
	}
	next := j.Schedule.Next(rec.Finished.Add(-j.Offset()))
	if !next.IsZero() {
		next = next.Add(j.Offset())
	}
	return j.Retry.At(rec.Finished, rec.Attempt, next, rand.Float64())
}

// tryAgain notes the retrial of a run that has ended, unless a later slot is on its way, or an
// operator has cancelled it after it had gone wrong and before that was recorded.
func (m *machine) tryAgain(f *flight, rec Record) {
	if rec.RetryAt.IsZero() || m.over {
		return
	}
	cancelled := f.cancelledBy(m)
	r := &retrial{Retrial: Retrial{Slot: rec.Slot, Attempt: rec.Attempt + 1, At: rec.RetryAt}}
	switch m.job.again().Failed(plan.Repeat{
		Cancelled: cancelled != nil || m.removed,
		Later:     m.claimed.After(rec.Slot) || m.slotWaits() || !m.slots.backlog.Empty(),
	}) {
	case plan.Withdrawn:
		why := errNoRetry
		if m.removed {
			why = errRemoved
		}
		m.void(r.item(m), cmp.Or(cancelled, why))
	case plan.Pending:
		m.retry = r
		m.say(zapcore.DebugLevel, nil, "the run is tried again", runFields(rec.Run, zap.Time("at", rec.RetryAt))...)
	case plan.Dropped, plan.First:
	}
}

// cancelledBy is the cause if an operator has cancelled the run, or all that there was of its
// job when the run no longer counted as going on. The job may have been configured anew since:
// m is its machine now.
func (f *flight) cancelledBy(m *machine) error {
	switch {
	case errors.Is(f.cause, errCancelled):
		return f.cause
	case f.of.cancels != f.cancels:
		return f.of.cancelled
	case m != f.of && m.cancels > 0:
		return m.cancelled
	}
	return nil
}

// item is the run of a retrial.
func (r *retrial) item(m *machine) *item {
	return &item{
		run: Run{Slot: r.Slot, Trigger: TriggerRetry, Attempt: r.Attempt},
		due: latest(r.At, m.due(r.Slot)), rerun: r.rerun,
	}
}
