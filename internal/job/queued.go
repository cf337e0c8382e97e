package job

import (
	"fmt"
	"time"
)

// verdict is the decision about the first queued item of a job.
type verdict int

const (
	starts  verdict = iota // now
	waits                  // it stays where it is
	refused                // it is not run
)

// advance begins the runs of a job that can begin; the rest waits.
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

// head is the first queued item; the backlog comes last. nil: nothing waits.
func (m *machine) head() *item {
	if len(m.queued) > 0 {
		return m.queued[0]
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

// take removes the first queued item.
func (m *machine) take(it *item) {
	if it.serial {
		m.slots.backlog.After = it.run.Slot
		return
	}
	m.queued[0] = nil
	m.queued = m.queued[1:]
}

// judge decides whether a run may begin now, and if not, why.
func (m *machine) judge(it *item) (Reason, verdict) {
	if it.manual() && it.ctx.Err() != nil {
		return "", refused // the requester has gone and will ask again
	}
	// The ledger takes slots in order only.
	if f := m.asking(); !it.manual() && f != nil {
		if !f.asked.Load() {
			return ReasonLate, waits // its claim is asked for later
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

// begin starts the run's goroutine, which claims first: a ledger that does not answer must not
// delay the other jobs.
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

// supersede drops earlier items in favour of later ones: of waiting slots the latest stays, and
// of items that wait for a run of the same job, too. It reports whether any was dropped.
func (m *machine) supersede(why Reason) bool {
	kept := m.queued[:0:0]
	var gone []*item
	behind := m.orphans > 0 || len(m.queued) > 0 && m.queued[0].rerun
	for i, it := range m.queued {
		it.behind = it.behind || behind && it.slotted()
		later := m.queued[i+1:]
		if it.rerun || it.run.Forced || !outdone(it, later, why) {
			it.why = why
			kept = append(kept, it)
			continue
		}
		gone = append(gone, it)
	}
	m.queued = kept
	for _, it := range gone {
		m.refuse(it, why)
	}
	return len(gone) > 0
}

// outdone reports whether a later queued item replaces a run.
func outdone(it *item, later []*item, why Reason) bool {
	for _, l := range later {
		if why == ReasonOverlap || it.slotted() && l.slotted() {
			return true
		}
	}
	return false
}

// refuse answers the requester of a refused run.
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
