package job

import (
	"fmt"
	"time"

	"go.uber.org/zap"
)

// mend has the runs recorded as lost that an earlier term has left open. The latest of
// them is run again if the job wants that, and no later slot is about to be.
func (s *session) mend(e *entry, open []Record, later bool) {
	for _, rec := range open {
		if rec.Term.Owner == s.term.Owner || rec.Term.Epoch > s.term.Epoch {
			continue // of this term; or of a later one, which means that this one is over
		}
		rec.State, rec.Finished = StateLost, s.now()
		rec.Error = fmt.Sprintf("node %q, which led in epoch %d, no longer leads; it has not told how the run ended", rec.Term.NodeID, rec.Term.Epoch)
		rerun := e.job.Rerun && !later && !e.tried && !e.always() && rec.Trigger != TriggerManual && isLatest(rec, open)
		if rerun {
			rec.RetryAt = rec.Finished.Truncate(time.Millisecond)
			e.mending++
			e.mendBy = time.Now().Add(patience)
		}
		s.clerk.record(rec, func(err error) { s.mended(rec, rerun, err) })
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

// mended goes on when a lost run is on record.
func (s *session) mended(rec Record, rerun bool, err error) {
	if err != nil {
		s.log.Warn("cannot record that a run was lost with its leader", runFields(rec.Run, zap.Error(err))...)
	} else {
		s.log.Warn("a run was lost with its leader", runFields(rec.Run, zap.Bool("rerun", rerun), zap.String("error", rec.Error))...)
		s.cfg.OnFinish(rec)
	}
	e := s.entries[rec.Job]
	if e == nil || !rerun {
		return
	}
	e.mending--
	if err == nil && !e.removed && !e.claimed.After(rec.Slot) {
		r := retrial{Retrial: Retrial{Slot: rec.Slot, Attempt: rec.Attempt + 1, At: rec.RetryAt}, rerun: true}
		e.line = append([]*item{r.item(e)}, e.line...)
	}
	s.advance(e)
}
