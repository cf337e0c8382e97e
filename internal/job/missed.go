package job

import (
	"errors"
	"slices"
	"time"

	"baton/internal/job/schedule"
)

// miss reports and records slots that are not run. While a claim of the job is unanswered they
// are held back: a recorded miss settles all earlier slots for every later term, and the claimed
// slot may be one of them.
func (m *machine) miss(missed Missed) {
	if missed.Count > 0 || missed.nothingKnown() || missed.mark() {
		m.held = append(m.held, m.explained(missed)...)
	}
	m.release()
}

// explained gives the reason for slots without a record in the ledger: no_leader if they passed
// after the last sign of life of a leader before this term, else unknown. An earlier leader may have had them
// wait for room, or they passed in this term before the job was configured.
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

// release reports and records the held misses, the earliest slots first, once the job's standing
// is known.
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

// unsure reports whether only the ledger can decide if the slots were missed: its clock may be
// behind them, or an unanswered claim may have been granted.
func (m Missed) unsure() bool {
	return m.Reason == ReasonLate || m.Reason == ReasonNoLeader || m.Reason == ReasonUnknown || m.Reason == ReasonLedger
}

// nothingKnown reports whether the ledger has no state of the job.
func (m Missed) nothingKnown() bool { return m.Reason == ReasonUnknown && m.Count == 0 }

// unclaimed reports whether it is a slot whose claim got no answer.
func (m Missed) unclaimed() bool { return m.Reason == ReasonLedger && m.Err != nil }

// mark reports whether it only records the start of the job's slots: nothing was missed.
func (m Missed) mark() bool { return m.Reason == reasonNone }

// joined notes that a miss was merged with one that is on its way to the ledger.
func (m *machine) joined() { m.sending-- }

// missRecorded takes the ledger's answer.
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

// claimedAfterAll reports a slot as a lost run and not as missed: its claim was granted, but the
// answer came too late.
func (m *machine) claimedAfterAll(missed Missed) {
	rec, ok := m.slots.disowned[missed.Slot.UnixMilli()]
	if !ok {
		return // by another run
	}
	m.do(recordEnd{rec}) // again: the claim may have arrived after the first one
	m.do(reportLost{rec})
}

// recording reports whether misses of a job are unrecorded. A slot that is claimed before them
// would hide them from every later term if this one ended now. But a miss that the ledger
// refuses for good must not stop the job.
func (m *machine) recording() bool {
	return len(m.held) > 0 || m.sending > 0 && m.clock.Sub(m.recordingSince) < patience
}
