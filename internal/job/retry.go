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

// retryAt is the time of the next attempt after a failed run; zero: none, also if the job's next
// slot is due before.
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

// tryAgain schedules the retrial of a run that has ended, unless a later slot is under way or an
// operator has cancelled it between its failure and the record of it.
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
		m.say(zapcore.DebugLevel, nil, "the run is retried", runFields(rec.Run, zap.Time("at", rec.RetryAt))...)
	case plan.Dropped, plan.First:
	}
}

// cancelledBy is the cause if an operator has cancelled the run, or all runs of its job after
// the work had returned. An update may have replaced the machine: m is the present one.
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

// item is the waiting run of a retrial.
func (r *retrial) item(m *machine) *item {
	return &item{
		run: Run{Slot: r.Slot, Trigger: TriggerRetry, Attempt: r.Attempt},
		due: latest(r.At, m.due(r.Slot)), rerun: r.rerun,
	}
}
