package job

import (
	"context"
	"time"

	"go.uber.org/zap"
)

const (
	retryMin = 100 * time.Millisecond
	retryMax = 2 * time.Second
)

// askLastSlots asks the ledger until it answers or the term ends. Meanwhile the
// schedules go on: what is due now matters more than what was due before.
func (s *session) askLastSlots() {
	names := make([]string, 0, len(s.entries))
	for _, e := range s.entries {
		names = append(names, e.job.Name)
	}
	if len(names) == 0 {
		return
	}
	for delay := retryMin; ; delay = min(2*delay, retryMax) {
		ctx, cancel := context.WithTimeout(s.ctx, s.cfg.ClaimTimeout)
		standings, err := s.ledger.Standings(ctx, names)
		cancel()
		if err == nil {
			last := make(map[string]time.Time, len(standings))
			for name, st := range standings {
				last[name] = st.Last
			}
			s.last <- last
			return
		}
		if delay == retryMin && s.ctx.Err() == nil {
			s.log.Warn("cannot read which slots were run last; will try again, and catch up when it is known", zap.Error(err))
		}
		if pause(s.ctx, delay) != nil {
			return
		}
	}
}

// catchUp deals with the slots that passed before this term. A job that the ledger
// does not know is new, or the ledger is gone: which slots were run is not known, and
// running one twice is worse than not at all.
func (s *session) catchUp(last map[string]time.Time) {
	now := wallNow()
	for _, e := range s.entries {
		at, known := last[e.job.Name]
		if !known {
			s.log.Debug("no slot of the job is on record; nothing is caught up", zap.String("job", e.job.Name))
			continue
		}
		if at.Sub(now) > onTime && !e.tried {
			s.log.Warn("the last slot of the job lies ahead of this node's clock; the job waits until the clock has passed it",
				zap.String("job", e.job.Name), zap.Time("slot", at))
		}
		p := planCatchUp(e.job, at, s.start, now)
		if e.tried && !p.slot.IsZero() {
			// A slot of this term went first, and the ledger takes only later ones.
			p.missed.Count++
			p.missed.Slot, p.slot = p.slot, time.Time{}
		}
		s.carryOut(e, p)
	}
}
