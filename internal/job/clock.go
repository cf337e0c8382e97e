package job

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"baton/internal/job/schedule"
)

// WrongClock limits the difference between a host's clock and the ledger's clock. Hosts with correct clocks never differ that much. If the
// difference is larger, slots follow the ledger's clock.
const WrongClock = 5 * time.Second

// checkClock records that the loop makes progress. If the wall clock has jumped since the time in the argument before, it adjusts the jobs.
// It returns the present time.
func (s *session) checkClock(before instant) instant {
	now := instant{clock: time.Now(), wall: s.now()}
	s.noteProgress(now.clock)
	if by, jumped := clockJump(now.wall.Sub(before.wall), now.clock.Sub(before.clock)); jumped {
		s.log.Warn("the wall clock has jumped: it was set, or the machine was suspended; "+
			"after a jump forward skipped slots are late; after a jump back jobs wait until the clock has passed their last slots",
			zap.Duration("by", by))
		for _, p := range s.jobs {
			s.hand(p, func(m *machine) { m.clockJumped(by) })
		}
		s.compareClocks(false)
	}
	return now
}

// compareClocks starts a comparison of this node's clock and the ledger's clock. The loop makes a round after the comparison. The argument
// doubt means that a waiting slot is in the future by the ledger's clock.
func (s *session) compareClocks(doubt bool) {
	s.doubted = s.doubted || doubt
	if s.comparing {
		return
	}
	s.comparing = true
	go func() {
		right := s.cfg.CompareClocks()
		s.post(func() {
			s.comparing = false
			if now := time.Now(); right && s.doubted && (s.eased.IsZero() || now.Sub(s.eased) >= maxSleep) {
				// The retry is done only once, even if the clocks still differ.
				s.doubted, s.eased = false, now
				for _, p := range s.jobs {
					s.hand(p, func(m *machine) { m.slots.retryAfter = time.Time{} })
				}
			}
		})
	}()
}

// instant is one moment, as read from the monotonic clock and from the wall clock.
type instant struct{ clock, wall time.Time }

// clockJumped handles a jump of the wall clock. After a jump back, some slots are in the future again. clockJumped makes the job wait for
// those that are neither claimed nor reported as missed.
func (m *machine) clockJumped(by time.Duration) {
	m.slots.retryAfter = time.Time{}
	if by < 0 && !m.removed {
		m.timing.clockBack(m)
	}
}

// letGo drops waiting slots, and misses that are not recorded yet, if they are later than the time in the argument after.
func (m *machine) letGo(after time.Time) {
	kept := m.queued[:0:0]
	for _, it := range m.queued {
		if !it.slotted() || !it.run.Slot.After(after) {
			kept = append(kept, it)
		}
	}
	m.queued = kept
	if m.slots.backlog.Until.After(after) {
		m.slots.backlog.Until, _ = schedule.Latest(m.job.Schedule, m.slots.backlog.After, after)
	}
	held := m.held[:0:0]
	for _, missed := range m.held {
		if missed.First.After(after) {
			continue
		}
		if missed.Slot.After(after) {
			whole := missed
			missed = m.passedOver(missed.Reason, missed.First.Add(-time.Nanosecond), after)
			missed.Slot, _ = schedule.Latest(m.job.Schedule, whole.First.Add(-time.Nanosecond), after)
			missed.After, missed.Err = whole.After, whole.Err
		}
		held = append(held, missed)
	}
	m.held = held
}

// goBack makes the job wait again for the slot in the argument to, which is ahead of the ledger's clock. This slot is not due yet, even if
// it is due by this node's clock. Neither this slot nor a later slot counts as missed.
func (m *machine) goBack(to time.Time) {
	before := to.Add(-time.Nanosecond)
	m.letGo(before)
	m.slots.settledThrough = latest(m.claimed, earliest(m.slots.settledThrough, before))
	now := m.now
	m.comeAgain(m.nominal(now))
	m.slots.retryAfter = now.Add(maxSleep)
	m.do(compareClocks{})
	m.do(logLine{level: zapcore.WarnLevel, seldom: true,
		text: "the job's next slot is in the future by the ledger's clock: this node's clock or the ledger's is wrong; " +
			"the slot waits until they agree",
		fields: []zap.Field{zap.String("job", m.job.Name), zap.Time("slot", m.next), zap.Time("clock", now)}})
}

// comeAgain sets the job's next slot to the first slot that is neither settled nor in progress.
func (m *machine) comeAgain(nominal time.Time) {
	m.slots.base = earliest(m.slots.base, nominal) // base was read from a clock that was ahead
	floor := latest(m.slots.settledThrough, m.slots.base)
	if f := m.asking(); f != nil {
		floor = latest(floor, f.run.Slot)
	}
	for _, it := range m.queued {
		if it.slotted() {
			floor = latest(floor, it.run.Slot)
		}
	}
	for _, missed := range m.held {
		floor = latest(floor, missed.Slot)
	}
	if !m.slots.backlog.Empty() {
		floor = latest(floor, m.slots.backlog.Until)
	}
	if first := m.job.Schedule.Next(floor); m.next.IsZero() || first.Before(m.next) {
		m.slots.prev, m.next = time.Time{}, first
	}
}

// clockJump returns how much more or less time has passed on the wall clock than on the monotonic clock. If the difference is large, it
// reports a jump: the wall clock was set, or the machine was suspended.
func clockJump(wallElapsed, elapsed time.Duration) (by time.Duration, jumped bool) {
	const slewed = time.Second // a clock that is only slewed differs by less
	by = wallElapsed - elapsed
	return by, by > slewed || by < -slewed
}
