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

// askStandings asks the ledger for the states of jobs until the ledger answers or the term ends. Slots of the term wait for the answer,
// because the first claimed slot would settle all earlier slots and hide missed slots. The argument fresh is true if the jobs came with an
// update of the configuration.
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

// askInParts asks the ledger about all jobs, a part of them at a time, and stops when the ledger does not answer. It returns the jobs
// without an answer.
func (s *session) askInParts(names []string, fresh, some bool) (left []string, first error) {
	for part := range slices.Chunk(names, askAtOnce) {
		if errors.Is(first, context.DeadlineExceeded) || s.ctx.Err() != nil {
			left = append(left, part...)
			continue
		}
		unread, err := s.readResumeStates(part, fresh, some)
		left = append(left, unread...)
		if first == nil {
			first = err
		}
	}
	return left, first
}

// readResumeStates asks once and returns the jobs whose state is still unknown. If the ledger answers with an error, readResumeStates
// asks again for each half of the jobs, because bad data of one job must not delay the other jobs. If the ledger does not answer at
// all, readResumeStates does not ask again.
func (s *session) readResumeStates(names []string, fresh, some bool) ([]string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.ClaimTimeout)
	defer cancel()
	states, err := s.ledger.ResumeStates(ctx, names)
	if err != nil { // the ledger may be able to read although it cannot record
		s.cfg.OnAttempt(names[0], err)
	}
	switch {
	case err == nil:
		s.inTerm(func() { s.learn(names, states, fresh) })
		return nil, nil
	case !some || len(names) == 1 || ctx.Err() != nil:
		return names, err
	}
	half := len(names) / 2
	left, _ := s.readResumeStates(names[:half], fresh, true)
	more, _ := s.readResumeStates(names[half:], fresh, true)
	return slices.Concat(left, more), err
}

// learn handles the states that the ledger has returned. A job without a state is new, or the ledger has lost its data. No slots are
// caught up then, because running a slot twice is worse than missing it. learn records this miss.
func (s *session) learn(names []string, states map[string]ResumeState, fresh bool) {
	for _, name := range names {
		if p := s.jobs[name]; p != nil && !p.known && !p.removed {
			st, known := states[name]
			s.hand(p, func(m *machine) { m.learn(st, known, fresh) })
		}
	}
}

// closeOrphans records the open runs of earlier terms as lost. The latest of them is rerun if the job's OnLost requires this and no
// later slot is about to run.
func (m *machine) closeOrphans(open []Record, later bool) {
	for _, rec := range open {
		if rec.Term.Owner == m.term.Owner || rec.Term.Epoch > m.term.Epoch {
			continue // a run of this term, or of a later term: then this term is over
		}
		rec.State, rec.Finished, rec.NoFailure = StateLost, m.now, schedule.IsAlways(m.job.Schedule)
		rec.Error = fmt.Sprintf("node %q, which led in epoch %d, no longer leads; how the run ended is unknown",
			rec.Term.NodeID, rec.Term.Epoch)
		fate := m.job.rerunPolicy().Lost(plan.RerunState{Later: later || m.slots.begunThisTerm || !isLatest(rec, open)})
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

// orphanClosed decides about the rerun of a lost run, when the outbox has recorded that the run was lost.
func (m *machine) orphanClosed(rec Record, err error) {
	m.orphans--
	r := retrial{Retrial: Retrial{Slot: rec.Slot, Attempt: rec.Attempt + 1, At: rec.RetryAt}, rerun: true}
	if err == nil && !m.over && !m.removed {
		// The policy that was in force when the loss was sent to the ledger applies.
		rerun := plan.RerunPolicy{OnLost: plan.OnLostRerun}
		m.repeat(&r, rerun.Lost(plan.RerunState{Cancelled: m.cancels > 0, Later: m.claimed.After(rec.Slot)}))
	}
	m.advance()
}
