package job

import (
	"time"

	"go.uber.org/zap"
)

// startDue deals with every job that the clock has come to.
func (s *session) startDue() {
	now := s.now()
	var due []*entry
	for len(s.queue) > 0 && !now.Before(s.queue[0].at) {
		e := s.queue[0]
		s.queue.set(e, time.Time{})
		due = append(due, e)
	}
	for _, e := range due {
		s.look(e, now)
	}
}

// look deals with what is due of one job.
func (s *session) look(e *entry, now time.Time) {
	slotDue := !e.removed && !e.next.IsZero() && !now.Before(e.due(e.next)) && !now.Before(e.ahead)
	switch {
	case slotDue && e.always():
		e.next = time.Time{} // its end has it started again
		if !e.busy() {
			s.begin(e, &item{run: Run{Slot: s.startOf(e, now), Trigger: TriggerSchedule, Attempt: 1}})
		}
	case slotDue:
		p := planDue(e.job, e.next, e.nominal(now))
		p.follows(e.prev)
		after := e.prev
		if p.missed.Count > 0 {
			after = p.missed.Slot
		}
		e.prev, e.next = p.last, p.next
		if e.next.IsZero() {
			s.log.Error("the job's schedule has no further slot; it will not run again", zap.String("job", e.job.Name))
		}
		s.carryOut(e, p, after)
	}
	if r := e.retry; r != nil && !now.Before(r.At) {
		e.retry = nil
		e.line = append(e.line, r.item(e))
	}
	s.advance(e)
}

// startOf is the slot of a start of a job that runs all the time: now, but after all
// that were claimed, whatever has become of the clock.
func (s *session) startOf(e *entry, now time.Time) time.Time {
	return latest(now, e.claimed.Add(time.Millisecond)).Truncate(time.Millisecond)
}

// follows notes which slot was before the missed ones.
func (p *plan) follows(prev time.Time) {
	if p.missed.Count > 0 {
		p.missed.After = prev
	}
}

// carryOut does what a plan says. What waited of earlier slots gives way to what came
// due after them, so that no slot is told as missed while an earlier one may yet run.
func (s *session) carryOut(e *entry, p plan, after time.Time) {
	e.holding++
	s.expire(e)
	if p.missed.Count > 0 {
		s.giveUpSlots(e)
	}
	s.dropRetry(e)
	s.miss(e, p.missed)
	switch {
	case !p.backlog.empty():
		s.queueUp(e, p.backlog)
	case p.slot.IsZero():
	case e.catchesAllUp() && (!e.backlog.empty() || e.inTurn() || e.asking() != nil || !e.known):
		s.queueUp(e, backlog{after: p.slot.Add(-time.Nanosecond), until: p.slot, reason: ReasonLedger})
	default:
		e.tried = true
		e.line = append(e.line, &item{
			run: Run{Slot: p.slot, Trigger: p.trigger, Attempt: 1}, after: after, due: e.due(p.slot),
		})
	}
	e.holding--
	s.release(e)
	s.advance(e)
}

// queueUp puts slots behind those that are run one after the other.
func (s *session) queueUp(e *entry, b backlog) {
	if !e.backlog.empty() {
		b.after, b.reason = e.backlog.after, e.backlog.reason
	}
	e.backlog = b
}

// dropRetry gives up what is to be tried again of an earlier slot, since a later one is
// due. The ledger does the same when it is claimed.
func (s *session) dropRetry(e *entry) {
	if e.retry != nil && !e.retry.rerun {
		e.retry = nil
	}
	kept := e.line[:0]
	for _, it := range e.line {
		if !it.retried() || it.rerun {
			kept = append(kept, it)
		}
	}
	clear(e.line[len(kept):])
	e.line = kept
}

// giveUpSlots tells of every slot that waits as missed, for what it waited for.
func (s *session) giveUpSlots(e *entry) {
	kept := e.line[:0:0]
	for _, it := range e.line {
		if !it.slotted() {
			kept = append(kept, it)
			continue
		}
		s.missItem(e, it, it.why)
	}
	e.line = kept
	if b := e.backlog; !b.empty() {
		e.backlog = backlog{}
		s.miss(e, passedOver(e.job, b.reason, b.after, b.until, time.Time{}))
	}
}

// expire tells of the slots that wait and are past their deadline.
func (s *session) expire(e *entry) {
	limit, now := e.job.StartingDeadline, s.now()
	if limit <= 0 {
		return
	}
	kept := e.line[:0:0]
	for _, it := range e.line {
		if it.slotted() && now.Sub(it.due) > limit {
			s.missItem(e, it, it.why)
			continue
		}
		kept = append(kept, it)
	}
	e.line = kept
	if b := e.backlog; !b.empty() {
		past, ok := latestSlot(e.job.Schedule, b.after, earliest(b.until, e.nominal(now).Add(-limit-time.Nanosecond)))
		if ok {
			e.backlog.after = past
			s.miss(e, passedOver(e.job, b.reason, b.after, past, time.Time{}))
		}
	}
}

// missItem tells of one slot that is not run.
func (s *session) missItem(e *entry, it *item, why Reason) {
	if why == "" {
		why = ReasonLate
	}
	s.miss(e, Missed{Job: e.job.Name, Reason: why, Count: 1, First: it.run.Slot, Slot: it.run.Slot, After: it.after})
}
