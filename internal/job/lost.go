package job

import (
	"fmt"
	"time"

	"baton/internal/job/plan"
)

// closeOrphans records the open runs of earlier terms as lost. The latest of them is rerun if
// the job's OnLost says so and no later slot is about to run.
func (m *machine) closeOrphans(open []Record, later bool) {
	for _, rec := range open {
		if rec.Term.Owner == m.term.Owner || rec.Term.Epoch > m.term.Epoch {
			continue // of this term, or of a later one: then this term is over
		}
		rec.State, rec.Finished = StateLost, m.now
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
