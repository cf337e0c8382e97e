package job

import (
	"errors"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"baton/internal/job/plan"
	"baton/internal/job/schedule"
)

// timing is the schedule-dependent part of a job's machine: when the job starts, and what happens if a start is not possible. It is
// [slots] or [always].
type timing interface {
	from(m *machine, at time.Time) // the job starts from a time on
	due(m *machine)                // the next start is due
	// endless reports whether runs end only when they are cancelled. Such runs do not count for MaxConcurrent, never overlap, and end with
	// the job.
	endless() bool
	overlap(m *machine, it *dueRun) (Reason, admission)  // a run is due while another run is in progress
	unnamed(m *machine, f *activeRun, err error)         // a run got no ID
	refused(m *machine, f *activeRun, err error)         // the ledger has refused a start
	ended(m *machine, lasted time.Duration)              // a run has ended
	learn(m *machine, st ResumeState, known, fresh bool) // the job's state has arrived
	clockBack(m *machine)                                // the wall clock was put back
	left(m *machine)                                     // an update replaces this timing by the other timing
	entered(m *machine)                                  // an update replaces the other timing by this timing
	changed(m *machine, old Job)                         // an update changes the job but not its schedule
	pauseChanged(m *machine, reason string)              // the job is paused, or with "" it is not
}

func (m *machine) timingOf() timing {
	if schedule.IsAlways(m.job.Schedule) {
		return &m.always
	}
	return &m.slots
}

// slots is the timing of a job with slots. It records which slots are settled and which are pending.
type slots struct {
	prev           time.Time // the slot that came due last; zero: unknown
	base           time.Time // slots up to this time are not in this term's schedule
	settledThrough time.Time // slots up to this time are claimed, or counted as missed
	begunThisTerm  bool      // a slot of this term was begun, or waits: earlier slots can no longer be claimed
	retryAfter     time.Time // the next slot is ahead of the ledger's clock and is not tried before this time
	backlog        backlog   // slots that are run one after the other, after the queue
	// disowned are runs whose claim got no answer, by slot in ms. A run is removed when the ledger has answered whether the claim was
	// granted.
	disowned map[int64]Record
}

func (s *slots) from(m *machine, at time.Time) {
	s.base = m.nominal(at)
	m.next = m.job.Schedule.Next(s.base)
}

func (s *slots) due(m *machine) {
	p := plan.Now(m.job.policy(), m.next, m.nominal(m.now))
	after := s.prev
	if p.Missed.Count > 0 {
		p.Missed.After, after = s.prev, p.Missed.Slot
	}
	s.prev, m.next = p.Last, p.Next
	if m.next.IsZero() {
		m.say(zapcore.ErrorLevel, nil, "the job's schedule has no further slot; it will not run again", zap.String("job", m.job.Name))
	}
	m.carryOut(p, after)
}

// carryOut executes a plan. If the plan contains missed slots, it first drops the waiting earlier slots. Otherwise a slot would be reported
// as missed while an earlier slot may still run.
func (m *machine) carryOut(p plan.Decision, after time.Time) {
	m.holding++
	m.expire()
	if p.Missed.Count > 0 {
		m.giveUpSlots()
	}
	m.dropRetry()
	m.miss(m.passed(ReasonLate, p.Missed))
	switch {
	case !p.Backlog.Empty():
		m.queueUp(backlog{p.Backlog, ReasonLate})
	case p.Slot.IsZero():
	case m.catchesAllUp() && (!m.slots.backlog.Empty() || m.inTurn() || m.asking() != nil || !m.known):
		m.queueUp(backlog{plan.SlotRange{After: p.Slot.Add(-time.Nanosecond), Until: p.Slot}, ReasonLedger})
	default:
		m.putInLine(p, after)
	}
	m.holding--
	m.release()
	m.advance()
}

// putInLine adds a slot to the queue. When the slot's turn comes, all slots up to the time in the argument after are settled.
func (m *machine) putInLine(p plan.Decision, after time.Time) {
	m.slots.begunThisTerm = true
	m.queued = append(m.queued, &dueRun{
		run: Run{Slot: p.Slot, Trigger: triggerOf(p), Attempt: 1}, after: after, due: m.due(p.Slot),
	})
}

func triggerOf(p plan.Decision) Trigger {
	if p.CaughtUp {
		return TriggerCatchUp
	}
	return TriggerSchedule
}

// queueUp adds slots to the backlog.
func (m *machine) queueUp(b backlog) {
	if !m.slots.backlog.Empty() {
		b.After, b.reason = m.slots.backlog.After, m.slots.backlog.reason
	}
	m.slots.backlog = b
}

func (s *slots) endless() bool { return false }

func (s *slots) overlap(m *machine, it *dueRun) (Reason, admission) {
	clash := m.job.Overlap.Decide(plan.Due{
		Forced: it.run.Forced, InTurn: it.serial, Rerun: it.rerun || it.behind,
		GoingOn: m.goingOn(), Most: m.job.MaxOverlap,
	})
	if clash.Cancel {
		for _, f := range m.active {
			if f.answered {
				m.cancelRun(f, errReplaced)
			}
		}
	}
	switch {
	case clash.Begin:
		return "", admitted
	case clash.Wait:
		return ReasonOverlap, deferred
	}
	return ReasonOverlap, rejected
}

func (s *slots) unnamed(m *machine, f *activeRun, err error) { m.reportUnclaimed(f, err) }

func (s *slots) refused(m *machine, f *activeRun, err error) {
	if errors.Is(err, ErrAhead) && f.item.slotted() {
		m.goBack(f.run.Slot)
		return
	}
	if outcomeUnknown(err) {
		rec := m.disown(f, err)
		if f.item.slotted() {
			if s.disowned == nil {
				s.disowned = map[int64]Record{}
			}
			s.disowned[f.run.Slot.UnixMilli()] = rec
		}
	}
	m.reportUnclaimed(f, err)
}

func (s *slots) ended(*machine, time.Duration) {}

func (s *slots) learn(m *machine, st ResumeState, known, fresh bool) {
	if known {
		m.resume(st, fresh)
	} else {
		m.missUnknown()
	}
}

func (s *slots) clockBack(m *machine) {
	nominal := m.nominal(m.now)
	m.letGo(nominal)
	m.comeAgain(nominal)
}

func (s *slots) left(*machine) {}

// entered records when the new schedule starts. Otherwise a later term would search the time before that for slots of the new schedule.
func (s *slots) entered(m *machine) {
	if m.known {
		m.miss(Missed{Job: m.job.Name, Reason: reasonNone, First: s.base, Slot: s.base})
	}
}

func (s *slots) changed(m *machine, _ Job) {
	if m.job.CatchUp != plan.CatchUpAll && !s.backlog.Empty() {
		m.giveUpSlots()
	}
}

// pauseChanged does nothing, because runs in progress may continue to their end, and the ledger refuses the slots.
func (s *slots) pauseChanged(*machine, string) {}
