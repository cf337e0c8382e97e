package job

import (
	"fmt"
	"time"
)

// admission is the decision whether the first queued run of a job begins.
type admission int

const (
	admitted admission = iota // the item begins now
	deferred                  // the item stays in the queue
	rejected                  // the item is not run
)

// advance begins the queued runs of a job that can begin. The other runs wait.
func (m *machine) advance() {
	m.roomless = time.Time{}
	if m.over || m.closing {
		return
	}
	m.expire()
	for it := m.head(); it != nil; it = m.head() {
		why, v := m.admit(it)
		if v == deferred {
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
		if v == admitted {
			m.begin(it)
		} else {
			m.refuse(it, why)
		}
	}
}

// head returns the first queued run, or else a run of the next slot of the backlog. It returns nil if nothing waits.
func (m *machine) head() *dueRun {
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
	return &dueRun{
		run:   Run{Slot: slot, Trigger: TriggerCatchUp, Attempt: 1},
		after: m.slots.backlog.After, due: m.due(slot), serial: true, why: m.slots.backlog.reason,
	}
}

// take removes the run that head has returned.
func (m *machine) take(it *dueRun) {
	if it.serial {
		m.slots.backlog.After = it.run.Slot
		return
	}
	m.queued[0] = nil
	m.queued = m.queued[1:]
}

// admit decides whether a run may begin now. If not, it returns the reason.
func (m *machine) admit(it *dueRun) (Reason, admission) {
	if it.manual() && it.ctx.Err() != nil {
		return "", rejected // the requester has gone and will ask again
	}
	// The ledger accepts slots only in order.
	if f := m.asking(); !it.manual() && f != nil {
		if !f.asked.Load() {
			return ReasonLate, deferred // its claim is requested later
		}
		return ReasonLedger, deferred
	}
	if m.busy() {
		if why, v := m.timing.overlap(m, it); v != admitted {
			return why, v
		}
	}
	if it.slotted() && (!m.known || m.recording() || m.orphans > 0 && m.clock.Before(m.orphansUntil)) {
		return ReasonLedger, deferred
	}
	if m.room <= 0 && !m.timing.endless() {
		return ReasonConcurrency, deferred
	}
	return "", admitted
}

// begin starts the run's goroutine, which makes the claim, because a ledger that does not answer must not delay the other jobs.
func (m *machine) begin(it *dueRun) {
	f := m.newActiveRun(it)
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

// supersede drops waiting runs that later waiting runs replace, and reports whether it dropped a run. Of several waiting slots it keeps the
// latest. It also keeps the latest of several waiting runs that cannot begin because another run of the job is in progress.
func (m *machine) supersede(why Reason) bool {
	kept := m.queued[:0:0]
	var gone []*dueRun
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

// outdone reports whether a later queued run replaces a run.
func outdone(it *dueRun, later []*dueRun, why Reason) bool {
	for _, l := range later {
		if why == ReasonOverlap || it.slotted() && l.slotted() {
			return true
		}
	}
	return false
}

// refuse handles a run that will not begin. It answers the requester of a manual run, removes a retrial, or reports the slot as missed.
func (m *machine) refuse(it *dueRun, why Reason) {
	switch {
	case it.manual():
		m.answer(it.reply, fmt.Errorf("start job %q: %w", m.job.Name, ErrRunning))
	case it.retried():
		m.void(it, errOverlap)
	default:
		m.missItem(it, why)
	}
}
