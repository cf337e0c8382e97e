package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
)

// The causes by which runs end, beside the term's end and an operator's wish.
var (
	errReplaced  = errors.New("replaced by a later run")
	errOverlap   = errors.New("an earlier run of the job still goes on")
	errReloaded  = errors.New("the configuration was reloaded")
	errNotAlways = errors.New("the job is no longer @always")
	errRemoved   = errors.New("the job is no longer configured")
	errNoRetry   = errors.New("the job is no longer retried")
)

// begin hands a run to a goroutine of its own, which claims it before anything else:
// a ledger that does not answer must not hold the other jobs up.
func (s *session) begin(e *entry, it *item) {
	f := s.newFlight(e, it)
	if !it.manual() {
		var err error
		if f.run.ID, err = s.newID(); err != nil {
			s.noID(f, fmt.Errorf("make a run ID: %w", err))
			return
		}
	}
	if it.slotted() {
		e.tried = true
	}
	f.counted = !e.always()
	f.giveUp = s.patienceWith(e, it)
	s.launch(f)
}

// void takes a retrial away from the ledger, so that no term runs it: it is claimed,
// and recorded as cancelled.
func (s *session) void(e *entry, it *item, why error) {
	f := s.newFlight(e, it)
	var err error
	if f.run.ID, err = s.newID(); err != nil {
		return // the next slot takes it away
	}
	f.void = true
	f.giveUp = s.patienceWith(e, it)
	f.cancel(why)
	s.launch(f)
}

func (s *session) newFlight(e *entry, it *item) *flight {
	f := &flight{entry: e, item: it, run: it.run, job: e.job}
	f.run.Job, f.run.Term = e.job.Name, s.term
	f.run.Slot = f.run.Slot.Truncate(time.Millisecond) // as the ledger has it
	if it.serial {
		f.run.Trigger = s.late(e, f.run.Slot)
	}
	if it.reply != nil {
		f.replies = append(f.replies, it.reply)
	}
	f.ctx, f.cancel = context.WithCancelCause(s.ctx)
	return f
}

func (s *session) launch(f *flight) {
	f.entry.flights = append(f.entry.flights, f)
	s.flying++
	if f.counted {
		s.occupied++
	}
	go s.execute(f)
}

// late says whether a slot of a backlog has waited for anything but its turn.
func (s *session) late(e *entry, slot time.Time) Trigger {
	if due := e.due(slot); due.After(s.start) && s.now().Sub(due) <= onTime {
		return TriggerSchedule
	}
	return TriggerCatchUp
}

// patienceWith is until when a claim is asked for: the job's next slot is due, or the
// starting deadline is over. A job that runs all its slots has patience with each.
func (s *session) patienceWith(e *entry, it *item) time.Time {
	if e.always() {
		return time.Time{}
	}
	var until time.Time
	if it.manual() || it.retried() || !e.catchesAllUp() {
		if next := e.job.Schedule.Next(latest(it.run.Slot, e.nominal(s.now()))); !next.IsZero() {
			until = e.due(next)
		}
	}
	if limit := e.job.StartingDeadline; it.slotted() && limit > 0 {
		if deadline := it.due.Add(limit); until.IsZero() || deadline.Before(until) {
			until = deadline
		}
	}
	return until
}

// noID tells of a run that could not even be named.
func (s *session) noID(f *flight, err error) {
	f.cancel(nil)
	if f.entry.always() {
		s.again(f.entry, 0)
		return
	}
	s.tellUnclaimed(f, err)
}

// answered takes the ledger's answer to a claim. A run whose claim was granted waits
// for this: what it does from here on is what the job is now.
func (s *session) answered(f *flight, err error) {
	e := f.entry
	f.answered, f.job = true, e.job
	for _, reply := range f.replies {
		answer(reply, err)
	}
	f.replies = nil
	if f.item.slotted() && (err == nil || errors.Is(err, ErrSlotTaken) || errors.Is(err, ErrPaused)) {
		e.claimed = latest(e.claimed, f.run.Slot)
		e.dealt = latest(e.dealt, f.run.Slot)
	}
	if err == nil {
		s.release(e)
		s.advance(e) // others may have waited for the answer
		return
	}
	defer s.landed(f, 0)
	switch {
	case errors.Is(err, ErrNotLeader):
		s.fail(fmt.Errorf("claim a slot of job %q: %w", f.run.Job, err))
		e.held = nil
	case errors.Is(err, ErrSlotTaken):
		s.log.Debug("the slot is not ours to run", runFields(f.run, zap.Time("slot", f.run.Slot), zap.Error(err))...)
	case s.ctx.Err() != nil:
		e.held = nil // the slots are the next leader's
	case errors.Is(err, ErrAhead) && f.item.slotted() && !e.always():
		s.goBack(e, f.run.Slot)
	case errors.Is(err, ErrPaused) || errors.Is(err, ErrAhead):
		s.tellUnclaimed(f, err)
	default:
		s.disown(f, err)
		s.tellUnclaimed(f, err)
	}
	s.release(e)
}

// disown has a run recorded as lost, if its claim was granted and only the answer did not
// come in time: it never began, and would count as going on until the term ends.
func (s *session) disown(f *flight, err error) {
	now := s.now()
	s.clerk.record(Record{
		Run: f.run, State: StateLost, Started: now, Finished: now,
		Error: clip(fmt.Sprintf("not started: its claim got no answer in time: %v", err)),
	}, nil)
}

// tellUnclaimed tells of the slot that a run did not get.
func (s *session) tellUnclaimed(f *flight, err error) {
	e, paused := f.entry, errors.Is(err, ErrPaused)
	m := Missed{
		Job: e.job.Name, Reason: ReasonLedger, Count: 1,
		First: f.run.Slot, Slot: f.run.Slot, After: f.item.after, Err: err,
	}
	if paused {
		m.Reason = ReasonPaused
	}
	switch {
	case f.item.manual(): // whoever asked for that has been told
	case e.always():
		e.paused = e.paused || paused
	case f.item.retried():
		s.log.Info("a run is not tried again", runFields(f.run, zap.Error(err))...)
	default:
		s.miss(e, m)
	}
}

// settle takes the end of a run whose claim was granted.
func (s *session) settle(f *flight, rec Record, recorded bool, lasted time.Duration, err error) {
	e := f.entry
	if errors.Is(err, ErrNotLeader) {
		s.fail(fmt.Errorf("job %q: %w", f.run.Job, err))
	}
	if recorded {
		s.tryAgain(e, rec)
	}
	s.landed(f, lasted)
}

// landed forgets a run, and goes on with what waited for its end.
func (s *session) landed(f *flight, lasted time.Duration) {
	e := f.entry
	f.cancel(nil)
	e.flights = slices.DeleteFunc(e.flights, func(other *flight) bool { return other == f })
	s.flying--
	if f.counted {
		s.occupied--
	}
	switch {
	case s.ctx.Err() != nil:
		return
	case e.removed && len(e.flights) == 0:
		s.forgetEntry(e)
	case e.always() && !e.removed && !e.busy():
		s.again(e, lasted)
	}
	s.advance(e)
	s.admit()
}

// fail ends the term.
func (s *session) fail(err error) {
	if s.ctx.Err() == nil {
		s.fatal = err
		s.stop(err)
	}
}

// answer tells one who waits; there is room for one answer.
func answer(to chan<- error, err error) {
	if to == nil {
		return
	}
	select {
	case to <- err:
	default:
	}
}
