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

// retryAt returns the time of the next attempt after a failed run. It returns zero if there is no next attempt, or if the job's next
// slot is due earlier.
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

// tryAgain schedules the retrial of a run that has ended. It schedules no retrial if a later slot is in progress, or if an operator has
// cancelled the run between the failure and the record of the failure.
func (m *machine) tryAgain(f *activeRun, rec Record) {
	if rec.RetryAt.IsZero() || m.over {
		return
	}
	cancelled := f.cancelledBy(m)
	r := &retrial{Retrial: Retrial{Slot: rec.Slot, Attempt: rec.Attempt + 1, At: rec.RetryAt}}
	switch m.job.rerunPolicy().Failed(plan.RerunState{
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

// cancelledBy returns the cause if an operator has cancelled the run, or all runs of its job after the work had returned. An update may
// have replaced the machine of the run, so m is the present machine.
func (f *activeRun) cancelledBy(m *machine) error {
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

// item returns the retrial as a waiting run.
func (r *retrial) item(m *machine) *dueRun {
	return &dueRun{
		run: Run{Slot: r.Slot, Trigger: TriggerRetry, Attempt: r.Attempt},
		due: latest(r.At, m.due(r.Slot)), rerun: r.rerun,
	}
}
