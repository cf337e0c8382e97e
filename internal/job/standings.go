package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"baton/internal/job/plan"
	"baton/internal/job/schedule"
)

// askStandings asks the ledger until it answers or the term ends. Slots of the term wait for it:
// the first of them would settle all earlier ones and hide missed slots. fresh jobs came with an
// update.
func (s *session) askStandings(names []string, fresh bool) {
	if len(names) == 0 {
		return
	}
	for delay := retryMin; ; delay = min(2*delay, retryMax) {
		var err error
		if names, err = s.askInParts(names, fresh, delay == retryMax); len(names) == 0 {
			return
		}
		if delay == retryMin && s.ctx.Err() == nil {
			s.log.Log(s.reports.loud(zapcore.WarnLevel, err), "cannot read the last slots of jobs; retrying, the jobs wait",
				zap.Error(err))
		}
		if pause(s.ctx, delay) != nil {
			return
		}
	}
}

// askInParts asks about all jobs, some at a time, until the ledger does not answer. It returns
// the jobs without an answer.
func (s *session) askInParts(names []string, fresh, some bool) (left []string, first error) {
	for part := range slices.Chunk(names, askAtOnce) {
		if errors.Is(first, context.DeadlineExceeded) || s.ctx.Err() != nil {
			left = append(left, part...)
			continue
		}
		unread, err := s.readStandings(part, fresh, some)
		left = append(left, unread...)
		if first == nil {
			first = err
		}
	}
	return left, first
}

// readStandings asks once and returns the jobs whose standing is still unknown. If the ledger
// answers with an error, it asks again by halves: bad data of one job must not delay the others.
// It does not if the ledger does not answer at all.
func (s *session) readStandings(names []string, fresh, some bool) ([]string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.ClaimTimeout)
	defer cancel()
	standings, err := s.ledger.Standings(ctx, names)
	if err != nil { // reading may work where recording does not
		s.cfg.OnAttempt(names[0], err)
	}
	switch {
	case err == nil:
		s.inTerm(func() { s.learn(names, standings, fresh) })
		return nil, nil
	case !some || len(names) == 1 || ctx.Err() != nil:
		return names, err
	}
	half := len(names) / 2
	left, _ := s.readStandings(names[:half], fresh, true)
	more, _ := s.readStandings(names[half:], fresh, true)
	return slices.Concat(left, more), err
}

// learn takes the ledger's standings. A job without one is new, or the ledger has lost its data:
// nothing is caught up, because running a slot twice is worse than missing it. That is recorded.
func (s *session) learn(names []string, standings map[string]Standing, fresh bool) {
	for _, name := range names {
		if p := s.jobs[name]; p != nil && !p.known && !p.removed {
			st, known := standings[name]
			s.hand(p, func(m *machine) { m.learn(st, known, fresh) })
		}
	}
}

// closeOrphans records the open runs of earlier terms as lost. The latest of them is rerun if
// the job's OnLost says so and no later slot is about to run.
func (m *machine) closeOrphans(open []Record, later bool) {
	for _, rec := range open {
		if rec.Term.Owner == m.term.Owner || rec.Term.Epoch > m.term.Epoch {
			continue // of this term, or of a later one: then this term is over
		}
		rec.State, rec.Finished, rec.NoFailure = StateLost, m.now, schedule.IsAlways(m.job.Schedule)
		rec.Error = fmt.Sprintf("node %q, which led in epoch %d, no longer leads; how the run ended is unknown",
			rec.Term.NodeID, rec.Term.Epoch)
		fate := m.job.again().Lost(plan.Repeat{Later: later || m.slots.begunThisTerm || !isLatest(rec, open)})
		rerun := fate == plan.First && rec.Trigger != TriggerManual
		if rerun {
			rec.RetryAt = rec.Finished.Truncate(time.Millisecond)
			m.orphans++
			m.orphansUntil = m.clock.Add(patience)
		}
		m.do(recordLost{rec, rerun})
	}
}

// isLatest reports whether no other open run has a later slot.
func isLatest(rec Record, open []Record) bool {
	for _, other := range open {
		if other.Trigger != TriggerManual && other.Slot.After(rec.Slot) {
			return false
		}
	}
	return true
}

// orphanClosed continues when a lost run that is to be rerun is recorded.
func (m *machine) orphanClosed(rec Record, err error) {
	m.orphans--
	r := retrial{Retrial: Retrial{Slot: rec.Slot, Attempt: rec.Attempt + 1, At: rec.RetryAt}, rerun: true}
	if err == nil && !m.over && !m.removed {
		// The policy counts that was in force when the loss was sent to the ledger.
		rerun := plan.Again{OnLost: plan.OnLostRerun}
		m.repeat(&r, rerun.Lost(plan.Repeat{Cancelled: m.cancels > 0, Later: m.claimed.After(rec.Slot)}))
	}
	m.advance()
}
