package job

import (
	"errors"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"baton/internal/job/plan"
	"baton/internal/job/schedule"
)

// timing is the schedule-dependent part of a job's machine: when the job starts, and what happens
// to a start that is not possible. It is [slots] or [always].
type timing interface {
	from(m *machine, at time.Time) // the job starts from a time on
	due(m *machine)                // the next start is due
	// endless: runs end only when they are cancelled. They take no room, never overlap, and end
	// with the job.
	endless() bool
	overlap(m *machine, it *item) (Reason, verdict)   // a run is due while another goes on
	unnamed(m *machine, f *flight, err error)         // a run got no ID
	refused(m *machine, f *flight, err error)         // the ledger has refused a start
	ended(m *machine, lasted time.Duration)           // a run has ended
	learn(m *machine, st Standing, known, fresh bool) // the job's standing has arrived
	clockBack(m *machine)                             // the wall clock was put back
	left(m *machine)                                  // an update replaces this timing by the other
	entered(m *machine)                               // an update replaces the other timing by this one
	changed(m *machine, old Job)                      // an update changes the job but not its schedule
	pauseChanged(m *machine, reason string)           // the job is paused, or with "" it is not
}

func (m *machine) timingOf() timing {
	if schedule.IsAlways(m.job.Schedule) {
		return &m.always
	}
	return &m.slots
}

// slots is the timing of a job with slots: which are settled, and which are pending.
type slots struct {
	prev           time.Time // the slot that came due last; zero: unknown
	base           time.Time // slots up to here are not in this term's schedule
	settledThrough time.Time // slots up to here are claimed, or counted as missed
	begunThisTerm  bool      // a slot of this term was begun, or waits: earlier ones can no longer be claimed
	retryAfter     time.Time // the next slot is ahead of the ledger's clock and not tried before this
	backlog        backlog   // slots that are run one after the other, behind the line
	// disowned are runs whose claim got no answer, by slot in ms, until the ledger has answered
	// whether it was granted.
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

// carryOut carries out a plan. Waiting earlier slots are dropped for later ones, so that no slot
// is reported as missed while an earlier one may still run.
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
		m.queueUp(backlog{plan.Stretch{After: p.Slot.Add(-time.Nanosecond), Until: p.Slot}, ReasonLedger})
	default:
		m.putInLine(p, after)
	}
	m.holding--
	m.release()
	m.advance()
}

// putInLine adds a slot to the line; by its turn all slots up to after are settled.
func (m *machine) putInLine(p plan.Decision, after time.Time) {
	m.slots.begunThisTerm = true
	m.queued = append(m.queued, &item{
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

func (s *slots) overlap(m *machine, it *item) (Reason, verdict) {
	clash := m.job.Overlap.Clash(plan.Due{
		Forced: it.run.Forced, InTurn: it.serial, Rerun: it.rerun || it.behind,
		GoingOn: m.goingOn(), Most: m.job.MaxOverlap,
	})
	if clash.Cancel {
		for _, f := range m.flights {
			if f.answered {
				m.cancelRun(f, errReplaced)
			}
		}
	}
	switch {
	case clash.Begin:
		return "", starts
	case clash.Wait:
		return ReasonOverlap, waits
	}
	return ReasonOverlap, refused
}

func (s *slots) unnamed(m *machine, f *flight, err error) { m.reportUnclaimed(f, err) }

func (s *slots) refused(m *machine, f *flight, err error) {
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

func (s *slots) learn(m *machine, st Standing, known, fresh bool) {
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

// entered records the start of the new schedule: else a later term would look for its slots in
// the time of the old one.
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

// pauseChanged does nothing: runs may end, and the ledger refuses the slots.
func (s *slots) pauseChanged(*machine, string) {}
