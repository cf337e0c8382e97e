package job

import (
	"fmt"
	"time"
)

// verdict is what becomes of the first in a job's line.
type verdict int

const (
	starts  verdict = iota // now
	waits                  // it stays where it is
	refused                // it is not run
)

// advance begins what can begin of a job, and has the rest wait.
func (m *machine) advance() {
	m.roomless = time.Time{}
	if m.over || m.closing {
		return
	}
	m.expire()
	for it := m.head(); it != nil; it = m.head() {
		why, v := m.judge(it)
		if v == waits {
			if m.supersede(why) {
				continue
			}
			if why == ReasonConcurrency {
				m.roomless = it.due
			}
			if it.serial {
				m.slots.backlog.reason = why
			}
			break
		}
		m.take(it)
		if v == starts {
			m.begin(it)
		} else {
			m.refuse(it, why)
		}
	}
}

// head is what is first in line: the backlog comes last. nil: nothing waits.
func (m *machine) head() *item {
	if len(m.line) > 0 {
		return m.line[0]
	}
	if m.slots.backlog.Empty() {
		return nil
	}
	slot := m.job.Schedule.Next(m.slots.backlog.After)
	if slot.IsZero() || slot.After(m.slots.backlog.Until) {
		m.slots.backlog = backlog{}
		return nil
	}
	return &item{
		run:   Run{Slot: slot, Trigger: TriggerCatchUp, Attempt: 1},
		after: m.slots.backlog.After, due: m.due(slot), serial: true, why: m.slots.backlog.reason,
	}
}

// take takes the first off the line.
func (m *machine) take(it *item) {
	if it.serial {
		m.slots.backlog.After = it.run.Slot
		return
	}
	m.line[0] = nil
	m.line = m.line[1:]
}

// judge says whether a run may begin now, and if not, what is in its way.
func (m *machine) judge(it *item) (Reason, verdict) {
	if it.manual() && it.ctx.Err() != nil {
		return "", refused // whoever asked has gone, and will ask again
	}
	// The ledger takes slots in order only.
	if f := m.asking(); !it.manual() && f != nil {
		if !f.asked.Load() {
			return ReasonLate, waits // until it is asked for, too
		}
		return ReasonLedger, waits
	}
	if m.busy() {
		if why, v := m.timing.overlap(m, it); v != starts {
			return why, v
		}
	}
	if it.slotted() && (!m.known || m.recording() || m.orphans > 0 && m.clock.Before(m.orphansUntil)) {
		return ReasonLedger, waits
	}
	if m.room <= 0 && !m.timing.endless() {
		return ReasonConcurrency, waits
	}
	return "", starts
}

// begin hands a run to a goroutine of its own, which claims it before anything else:
// a ledger that does not answer must not hold the other jobs up.
func (m *machine) begin(it *item) {
	f := m.newFlight(it)
	if !it.manual() {
		var err error
		if f.run.ID, err = m.newID(); err != nil {
			m.timing.unnamed(m, f, fmt.Errorf("make a run ID: %w", err))
			return
		}
	}
	if it.slotted() {
		m.slots.begunThisTerm = true
	}
	f.counted = !m.timing.endless()
	f.giveUp = m.patienceWith(it)
	m.start(f)
}

// supersede has earlier ones in line give way to later ones: of slots the latest stays,
// and of all that wait for a run of the same job as well. It reports whether any did.
func (m *machine) supersede(why Reason) bool {
	kept := m.line[:0:0]
	var gone []*item
	behind := m.orphans > 0 || len(m.line) > 0 && m.line[0].rerun
	for i, it := range m.line {
		it.behind = it.behind || behind && it.slotted()
		later := m.line[i+1:]
		if it.rerun || it.run.Forced || !outdone(it, later, why) {
			it.why = why
			kept = append(kept, it)
			continue
		}
		gone = append(gone, it)
	}
	m.line = kept
	for _, it := range gone {
		m.refuse(it, why)
	}
	return len(gone) > 0
}

// outdone reports whether something later in line takes a run's place.
func outdone(it *item, later []*item, why Reason) bool {
	for _, l := range later {
		if why == ReasonOverlap || it.slotted() && l.slotted() {
			return true
		}
	}
	return false
}

// refuse answers whoever asked for a run that is not to be.
func (m *machine) refuse(it *item, why Reason) {
	switch {
	case it.manual():
		m.answer(it.reply, fmt.Errorf("start job %q: %w", m.job.Name, ErrRunning))
	case it.retried():
		m.void(it, errOverlap)
	default:
		m.missItem(it, why)
	}
}
