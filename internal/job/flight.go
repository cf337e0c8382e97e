package job

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"baton/internal/job/plan"
)

// These are causes that end a run. A run also ends with its term, or by an operator's order.
var (
	errReplaced  = errors.New("replaced by a later run")
	errOverlap   = errors.New("an earlier run of the job is still in progress")
	errReloaded  = errors.New("the configuration was reloaded")
	errNotAlways = errors.New("the job is no longer @always")
	errRemoved   = errors.New("the job is no longer configured")
	errNoRetry   = errors.New("the job is no longer retried")
)

// void removes a retrial from the ledger, so that no term runs it: the retrial is claimed and recorded as cancelled.
func (m *machine) void(it *dueRun, why error) {
	f := m.newActiveRun(it)
	var err error
	if f.run.ID, err = m.newID(); err != nil {
		return // the next slot removes the retrial
	}
	f.void = true
	f.giveUp = m.patienceWith(it)
	m.start(f)
	m.cancelRun(f, why)
}

func (m *machine) newActiveRun(it *dueRun) *activeRun {
	f := &activeRun{item: it, run: it.run, job: m.job, of: m, cancels: m.cancels}
	f.run.Job, f.run.Term = m.job.Name, m.term
	f.run.Slot = f.run.Slot.Truncate(time.Millisecond) // the ledger's precision
	if it.serial {
		f.run.Trigger = m.late(f.run.Slot)
	}
	if it.reply != nil {
		f.replies = append(f.replies, it.reply)
	}
	return f
}

// late returns the trigger of a run whose slot is from the backlog. It is TriggerCatchUp if the slot passed before this term or has waited
// too long. Otherwise it is TriggerSchedule.
func (m *machine) late(slot time.Time) Trigger {
	if due := m.due(slot); due.After(m.began) && m.now.Sub(due) <= plan.OnTime {
		return TriggerSchedule
	}
	return TriggerCatchUp
}

// patienceWith returns the time until which a claim is retried: the due time of the job's next slot, or the starting deadline if that is
// earlier. The claim of a slot of a job with CatchUpAll ends only at the starting deadline. Zero means no limit.
func (m *machine) patienceWith(it *dueRun) time.Time {
	if m.timing.endless() {
		return time.Time{}
	}
	var until time.Time
	if it.manual() || it.retried() || !m.catchesAllUp() {
		if next := m.job.Schedule.Next(latest(it.run.Slot, m.nominal(m.now))); !next.IsZero() {
			until = m.due(next)
		}
	}
	if limit := m.job.StartingDeadline; it.slotted() && limit > 0 {
		if deadline := it.due.Add(limit); until.IsZero() || deadline.Before(until) {
			until = deadline
		}
	}
	return until
}

// answered handles the ledger's answer to the claim of a run. If the claim was granted, the run does its work as the job is now configured.
func (m *machine) answered(f *activeRun, err error) {
	f.answered, f.job = true, m.job
	for _, reply := range f.replies {
		m.answer(reply, err)
	}
	f.replies = nil
	if f.item.slotted() && (err == nil || errors.Is(err, ErrSlotTaken) || errors.Is(err, ErrPaused)) {
		m.claimed = latest(m.claimed, f.run.Slot)
		m.slots.settledThrough = latest(m.slots.settledThrough, f.run.Slot)
	}
	if err == nil {
		m.refused = nil
		m.release()
		m.advance() // other runs may wait for the answer
		return
	}
	defer m.landed(f, 0)
	switch {
	case errors.Is(err, ErrNotLeader):
		m.fail(fmt.Errorf("claim a slot of job %q: %w", f.run.Job, err))
		m.held = nil
	case errors.Is(err, ErrSlotTaken):
		m.say(zapcore.DebugLevel, nil, "the slot is taken", runFields(f.run, zap.Time("slot", f.run.Slot), zap.Error(err))...)
	case m.over || m.closing:
		m.held = nil // the slots belong to the next leader
	default:
		m.timing.refused(m, f, err)
	}
	m.release()
}

// outcomeUnknown reports whether a claim may have been granted despite its error.
func outcomeUnknown(err error) bool {
	return !errors.Is(err, ErrPaused) && !errors.Is(err, ErrAhead) && !late(err)
}

// disown records a run as lost if its claim may have been granted without a timely answer. The run never began, but without this record it
// would count as running until the term ends.
func (m *machine) disown(f *activeRun, err error) Record {
	now := m.now
	rec := Record{
		Run: f.run, State: StateLost, Started: now, Finished: now,
		Error: clip(fmt.Sprintf("not started: its claim got no answer in time: %v", err)),
	}
	m.do(recordEnd{rec})
	return rec
}

// reportUnclaimed handles a claim that was not granted. It reports the slot as missed, or logs that a retrial is not run.
func (m *machine) reportUnclaimed(f *activeRun, err error) {
	m.refused = err
	missed := Missed{
		Job: m.job.Name, Reason: ReasonLedger, Count: 1,
		First: f.run.Slot, Slot: f.run.Slot, After: f.item.after, Err: err,
	}
	if errors.Is(err, ErrPaused) {
		missed.Reason = ReasonPaused
	}
	if late(err) {
		missed.Reason = ReasonLate
	}
	switch {
	case f.item.manual(): // the requester has received the answer
	case f.item.retried():
		m.say(zapcore.InfoLevel, err, "a run is not retried", runFields(f.run, zap.Error(err))...)
	default:
		m.miss(missed)
	}
}

// settle handles the end of a granted run. The argument unrecorded is the error if the ledger has not accepted the run's record yet. In
// this case the outbox retries the record.
func (m *machine) settle(f *activeRun, rec Record, unrecorded error, lasted time.Duration, err error) {
	if errors.Is(err, ErrNotLeader) {
		m.fail(fmt.Errorf("job %q: %w", f.run.Job, err))
	}
	if unrecorded == nil {
		m.tryAgain(f, rec)
	} else {
		m.refused = unrecorded // the next slots also wait for the record
	}
	m.landed(f, lasted)
}

// landed removes a run that has ended, and begins the waiting runs that can begin now.
func (m *machine) landed(f *activeRun, lasted time.Duration) {
	m.active = slices.DeleteFunc(m.active, func(other *activeRun) bool { return other == f })
	if f.counted {
		m.room++
	}
	m.do(forgetRun{f})
	switch {
	case m.over:
		return
	case m.removed && len(m.active) == 0:
		m.forget()
	default:
		m.timing.ended(m, lasted)
	}
	m.advance()
}

// forget drops a job that is no longer configured and has no runs left.
func (m *machine) forget() {
	m.forgotten = true
	m.do(forgetJob{})
}
