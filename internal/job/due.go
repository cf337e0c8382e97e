package job

import (
	"time"

	"baton/internal/job/schedule"
)

// handleDue handles everything that is due for one job.
func (m *machine) handleDue() {
	now := m.now
	if m.closing {
		return
	}
	if !m.removed && !m.next.IsZero() && !now.Before(m.due(m.next)) && !now.Before(m.slots.retryAfter) {
		m.timing.due(m)
	}
	if r := m.retry; r != nil && !now.Before(r.At) {
		m.retry = nil
		m.queued = append(m.queued, r.item(m))
	}
	m.advance()
}

// dropRetry gives up the retrial of an earlier slot when a later slot is due. The ledger also drops the retrial when the later slot is
// claimed.
func (m *machine) dropRetry() {
	if m.retry != nil && !m.retry.rerun {
		m.retry = nil
	}
	kept := m.queued[:0]
	for _, it := range m.queued {
		if !it.retried() || it.rerun {
			kept = append(kept, it)
		}
	}
	clear(m.queued[len(kept):])
	m.queued = kept
}

// giveUpSlots reports every waiting slot as missed. The reason of the miss is the reason why the slot waited.
func (m *machine) giveUpSlots() {
	kept := m.queued[:0:0]
	for _, it := range m.queued {
		if !it.slotted() {
			kept = append(kept, it)
			continue
		}
		m.missItem(it, it.why)
	}
	m.queued = kept
	if b := m.slots.backlog; !b.Empty() {
		m.slots.backlog = backlog{}
		m.miss(m.passedOver(b.reason, b.After, b.Until))
	}
}

// expire reports the slots that have waited past their deadline as missed.
func (m *machine) expire() {
	limit, now := m.job.StartingDeadline, m.now
	if limit <= 0 {
		return
	}
	kept := m.queued[:0:0]
	for _, it := range m.queued {
		if it.slotted() && now.Sub(it.due) > limit {
			m.missItem(it, it.why)
			continue
		}
		kept = append(kept, it)
	}
	m.queued = kept
	if b := m.slots.backlog; !b.Empty() {
		past, ok := schedule.Latest(m.job.Schedule, b.After, earliest(b.Until, m.nominal(now).Add(-limit-time.Nanosecond)))
		if ok {
			m.slots.backlog.After = past
			m.miss(m.passedOver(b.reason, b.After, past))
		}
	}
}

// missItem reports one slot as not run.
func (m *machine) missItem(it *dueRun, why Reason) {
	if why == "" {
		why = ReasonLate
	}
	m.miss(Missed{Job: m.job.Name, Reason: why, Count: 1, First: it.run.Slot, Slot: it.run.Slot, After: it.after})
}

// nextWake returns the time at which the loop must next handle the job, or zero if there is no such time.
func (m *machine) nextWake() time.Time {
	if m.closing || m.forgotten {
		return time.Time{}
	}
	var at time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if !m.next.IsZero() && !m.removed {
		sooner(latest(m.due(m.next), m.slots.retryAfter))
	}
	if m.retry != nil {
		sooner(m.retry.At)
	}
	for _, it := range m.queued {
		if d := m.job.StartingDeadline; d > 0 && it.slotted() {
			sooner(it.due.Add(d + time.Millisecond))
		}
	}
	if len(m.queued) > 0 || !m.slots.backlog.Empty() {
		for _, until := range []time.Time{m.orphansUntil, m.recordingSince.Add(patience)} {
			if left := until.Sub(m.clock); left > 0 {
				sooner(m.now.Add(left + time.Millisecond))
			}
		}
	}
	return at
}
