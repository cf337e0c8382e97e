package job

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"baton/internal/job/plan"
)

const (
	retryMin = 100 * time.Millisecond
	retryMax = 2 * time.Second
	// patience limits how long a slot waits for the records of earlier slots: missed slots, and lost runs that are to be rerun. This time
	// is longer than most outages, but a ledger that always refuses such a record must not stop the job for long.
	patience = 5 * time.Minute
	// askAtOnce is the number of jobs per request, because a slow ledger would never answer a request for thousands of jobs in time.
	askAtOnce = 250
)

func (m *machine) learn(st ResumeState, known, fresh bool) {
	m.known = true
	m.holding++
	m.timing.learn(m, st, known, fresh)
	m.holding--
	m.release()
	m.advance()
}

func (m *machine) missUnknown() {
	from := m.slots.base.Truncate(time.Millisecond)
	m.miss(Missed{Job: m.job.Name, Reason: ReasonUnknown, First: from, Slot: from})
}

// resume continues where the last term ended. It handles lost runs, the slots that have passed since then, and the pending retrial.
func (m *machine) resume(st ResumeState, fresh bool) {
	if st.Last.IsZero() { // the job was only run manually, for example
		m.closeOrphans(st.Open, false)
		m.missUnknown()
		return
	}
	m.skip(st.Last)
	now := m.now
	if st.Last.Sub(now) > plan.OnTime {
		m.say(zapcore.WarnLevel, nil, "the job's last slot is in the future by this node's clock; the job waits until the clock "+
			"has passed it",
			zap.String("job", m.job.Name), zap.Time("slot", st.Last))
	}
	wanted := m.job.policy()
	if fresh {
		wanted.CatchUp = plan.CatchUpNone
	}
	p := plan.AtStart(wanted, st.Last, m.slots.base, m.nominal(now))
	if m.slots.begunThisTerm && !p.Last.IsZero() {
		// A slot of this term was begun first, and the ledger accepts only later slots.
		p.Slot, p.Backlog = time.Time{}, plan.SlotRange{}
		p.Missed = plan.PassedOver(m.job.Schedule, st.Last, p.Last, time.Time{})
	}
	m.slots.base, m.slots.settledThrough = earliest(m.slots.base, st.Last), latest(m.slots.settledThrough, st.Last)
	m.closeOrphans(st.Open, !p.Slot.IsZero())
	m.resumeRetry(st.Retry, p)
	m.catchUp(p)
}

// skip drops the slots up to the time in the argument last, because an earlier term has settled them. Slots of this term can be among them
// if the clock of this node or of an earlier leader was wrong.
func (m *machine) skip(last time.Time) {
	if !m.next.IsZero() && !m.next.After(last) {
		m.slots.prev, m.next = last, m.job.Schedule.Next(last)
	}
	kept := m.queued[:0:0]
	for _, it := range m.queued {
		if !it.slotted() || it.run.Slot.After(last) {
			kept = append(kept, it)
		}
	}
	held := m.held[:0:0]
	for _, missed := range m.held {
		if missed.Slot.After(last) {
			if !missed.First.After(last) {
				err := missed.Err
				missed = m.passedOver(missed.Reason, last, missed.Slot)
				missed.Err = err
			}
			held = append(held, missed)
		}
	}
	m.queued, m.held, m.slots.backlog.After = kept, held, latest(m.slots.backlog.After, last)
	m.slots.begunThisTerm = m.slotWaits() || len(m.held) > 0
}

// catchUp executes the plan for the slots that passed before this term.
func (m *machine) catchUp(p plan.Decision) {
	m.holding++
	m.miss(m.passed(ReasonNoLeader, p.Missed))
	switch {
	case !p.Backlog.Empty():
		waiting := backlog{p.Backlog, ReasonNoLeader}
		if !m.slots.backlog.Empty() { // slots of this term wait for the slots before them
			waiting.Until, waiting.reason = m.slots.backlog.Until, m.slots.backlog.reason
		}
		m.slots.backlog = waiting
	case !p.Slot.IsZero():
		after := p.Missed.Slot
		if p.Missed.Count == 0 {
			after = m.slots.settledThrough
		}
		m.putInLine(p, after)
	}
	m.holding--
	m.release()
	m.advance()
}

// resumeRetry continues a retrial that an earlier term left pending.
func (m *machine) resumeRetry(r *Retrial, p plan.Decision) {
	if r == nil || m.over {
		return
	}
	fate := m.job.rerunPolicy().Inherited(plan.RerunState{
		Cancelled: m.cancels > 0, // before the retrial was known
		Later:     m.slots.begunThisTerm || !p.Slot.IsZero(), Passed: !p.Last.IsZero(), Backlog: !p.Backlog.Empty(),
	})
	again := &retrial{Retrial: *r, rerun: m.job.OnLost == plan.OnLostRerun}
	if fate == plan.First { // before the backlog, but after an order that already waits
		m.queued = append(m.queued, again.item(m))
		return
	}
	m.repeat(again, fate)
}

// repeat executes a plan's decision about a slot that is to be run again.
func (m *machine) repeat(r *retrial, fate plan.RerunDecision) {
	switch fate {
	case plan.Dropped:
	case plan.Withdrawn:
		m.void(r.item(m), m.cancelled)
	case plan.Pending:
		m.retry = r
	case plan.First:
		m.queued = append([]*dueRun{r.item(m)}, m.queued...)
	}
}
