package job

import (
	"errors"
	"slices"
	"time"

	"baton/internal/job/schedule"
)

// miss reports and records slots that are not run. While a claim of the job is unanswered, miss holds the report back. The reason is
// that a recorded miss settles all earlier slots for every later term, and the claimed slot may be one of these slots.
func (m *machine) miss(missed Missed) {
	if missed.Count > 0 || missed.nothingKnown() || missed.mark() {
		m.held = append(m.held, m.explained(missed)...)
	}
	m.release()
}

// explained replaces the reason "no_leader" of slots to which it does not apply. It applies to slots that passed after the last sign of
// life of an earlier leader and before this term. All other slots get the reason "unknown": they may have waited for room under the earlier
// leader, or may have passed in this term before the job was configured.
func (m *machine) explained(missed Missed) []Missed {
	if missed.Reason != ReasonNoLeader {
		return []Missed{missed}
	}
	var parts []Missed
	before, after := missed.After, missed.First.Add(-time.Nanosecond)
	for _, span := range []struct {
		until  time.Time
		reason Reason
	}{{m.nominal(m.freeSince), ReasonUnknown}, {m.nominal(m.began), ReasonNoLeader}, {missed.Slot, ReasonUnknown}} {
		last, ok := schedule.Latest(m.job.Schedule, after, earliest(span.until, missed.Slot))
		if !ok {
			continue
		}
		part := m.passedOver(span.reason, after, last)
		part.After = before
		parts = append(parts, part)
		before, after = last, last
	}
	return parts
}

// release reports and records the held misses, the earliest slots first. It does nothing until the ledger has returned the job's state, or
// while the claim of a slot is unanswered.
func (m *machine) release() {
	if m.holding > 0 || len(m.held) == 0 || !m.known {
		return
	}
	if f := m.asking(); f != nil && f.item.slotted() {
		return
	}
	held := m.held
	m.held = nil
	slices.SortStableFunc(held, func(a, b Missed) int { return a.First.Compare(b.First) })
	for _, missed := range held {
		if missed.Count > 0 {
			m.slots.settledThrough = latest(m.slots.settledThrough, missed.Slot)
		}
		if !missed.unsure() && !missed.mark() {
			m.do(reportMissed{missed, m.refused})
		}
		if m.sending++; m.sending == 1 {
			m.recordingSince = m.clock
		}
		m.do(recordMissed{missed})
	}
}

// unsure reports whether only the ledger can decide if the slots were missed, because the ledger's clock may be behind the slots, or an
// unanswered claim may have been granted.
func (m Missed) unsure() bool {
	return m.Reason == ReasonLate || m.Reason == ReasonNoLeader || m.Reason == ReasonUnknown || m.Reason == ReasonLedger
}

// nothingKnown reports whether the ledger has no state of the job.
func (m Missed) nothingKnown() bool { return m.Reason == ReasonUnknown && m.Count == 0 }

// unclaimed reports whether the miss is a slot whose claim got no answer.
func (m Missed) unclaimed() bool { return m.Reason == ReasonLedger && m.Err != nil }

// mark reports whether the report only records the start of the job's slots, so that nothing was missed.
func (m Missed) mark() bool { return m.Reason == reasonNone }

// joined records that a miss was merged with another miss that waits in the outbox.
func (m *machine) joined() { m.sending-- }

// missRecorded handles the ledger's answer to a recorded miss.
func (m *machine) missRecorded(missed Missed, err error) {
	m.sending--
	m.recordingSince = m.clock
	if errors.Is(err, ErrNotLeader) {
		m.fail(err)
		return
	}
	switch {
	case m.forgotten || missed.mark(): // the job is gone, or nothing was missed
	case errors.Is(err, ErrAhead):
		m.goBack(missed.First)
	case errors.Is(err, ErrSlotTaken):
		m.claimedAfterAll(missed)
	case missed.unsure():
		m.do(reportMissed{missed, m.refused})
	}
	delete(m.slots.disowned, missed.Slot.UnixMilli())
	if !m.forgotten {
		m.advance()
	}
}

// claimedAfterAll reports a slot as a lost run instead of a miss, because its claim was granted, but the answer came too late.
func (m *machine) claimedAfterAll(missed Missed) {
	rec, ok := m.slots.disowned[missed.Slot.UnixMilli()]
	if !ok {
		return // claimed by another run
	}
	m.do(recordEnd{rec}) // repeated, because the claim may have arrived after the first record
	m.do(reportLost{rec})
}

// recording reports whether misses of the job are not recorded yet, so that the next slot must wait. A slot that is claimed before these
// misses are recorded would hide them from every later term. But a miss that the ledger always refuses must not stop the job, so recording
// returns false after a while.
func (m *machine) recording() bool {
	return len(m.held) > 0 || m.sending > 0 && m.clock.Sub(m.recordingSince) < patience
}
