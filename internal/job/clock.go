package job

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// lookAtClock notes progress, and sets the jobs right when the wall clock has jumped.
func (s *session) lookAtClock(before looked) looked {
	now := looked{clock: time.Now(), wall: s.now()}
	s.noteProgress(now.clock)
	if by, jumped := clockJump(now.wall.Sub(before.wall), now.clock.Sub(before.clock)); jumped {
		s.log.Warn("the wall clock has jumped: it was set, or the machine was suspended; "+
			"slots that were jumped over are late, and after a jump back jobs wait until it has passed what was dealt with",
			zap.Duration("by", by))
		for _, e := range s.entries {
			e.ahead = time.Time{}
			if by < 0 {
				s.jumpBack(e, now.wall)
			}
			s.requeue(e)
		}
	}
	return now
}

// looked is a time by both clocks: the one that only goes forward, and the wall's.
type looked struct{ clock, wall time.Time }

// jumpBack has a job come again to the slots that are ahead once more and that nobody
// has claimed, or told as missed.
func (s *session) jumpBack(e *entry, now time.Time) {
	if e.always() || e.removed {
		return
	}
	nominal := e.nominal(now)
	e.letGo(nominal)
	s.comeAgain(e, nominal)
}

// letGo forgets what waits of the slots after a time.
func (e *entry) letGo(after time.Time) {
	kept := e.line[:0:0]
	for _, it := range e.line {
		if !it.slotted() || !it.run.Slot.After(after) {
			kept = append(kept, it)
		}
	}
	e.line = kept
	if e.backlog.until.After(after) {
		e.backlog.until, _ = latestSlot(e.job.Schedule, e.backlog.after, after)
	}
	held := e.held[:0:0]
	for _, m := range e.held {
		if m.First.After(after) {
			continue
		}
		if m.Slot.After(after) {
			whole := m
			m = passedOver(e.job, m.Reason, m.First.Add(-time.Nanosecond), after, time.Time{})
			m.Slot, _ = latestSlot(e.job.Schedule, whole.First.Add(-time.Nanosecond), after)
			m.After, m.Err = whole.After, whole.Err
		}
		held = append(held, m)
	}
	e.held = held
}

// goBack has a job come again to a slot that lies ahead of the ledger's clock, or to the
// first of some: it is still to come, whatever this node's clock says. It is not
// missed, nor is any after it.
func (s *session) goBack(e *entry, to time.Time) {
	before := to.Add(-time.Nanosecond)
	e.letGo(before)
	e.dealt = latest(e.claimed, earliest(e.dealt, before))
	now := s.now()
	s.comeAgain(e, e.nominal(now))
	e.ahead = now.Add(maxSleep)
	text := "the job's next slot lies ahead of the ledger's clock: this node's clock is wrong, or that of the ledger; " +
		"the slot waits until they agree"
	s.log.Log(e.misses.level(text, zapcore.WarnLevel, time.Now()), text,
		zap.String("job", e.job.Name), zap.Time("slot", e.next), zap.Time("clock", now))
}

// comeAgain has the next slot be the first that is in nobody's hands.
func (s *session) comeAgain(e *entry, nominal time.Time) {
	e.base = earliest(e.base, nominal) // it was told by a clock that was ahead
	floor := latest(e.dealt, e.base)
	if f := e.asking(); f != nil {
		floor = latest(floor, f.run.Slot)
	}
	for _, it := range e.line {
		if it.slotted() {
			floor = latest(floor, it.run.Slot)
		}
	}
	for _, m := range e.held {
		floor = latest(floor, m.Slot)
	}
	if !e.backlog.empty() {
		floor = latest(floor, e.backlog.until)
	}
	if first := e.job.Schedule.Next(floor); e.next.IsZero() || first.Before(e.next) {
		e.prev, e.next = time.Time{}, first
	}
}

// clockJump is by how much the wall clock went otherwise than the time that passed:
// it was set, or the machine was suspended.
func clockJump(wallElapsed, elapsed time.Duration) (by time.Duration, jumped bool) {
	const slewed = time.Second // a clock that is only slewed stays below this
	by = wallElapsed - elapsed
	return by, by > slewed || by < -slewed
}
