package job

import (
	"fmt"
	"time"
)

// verdict is what becomes of the first in a job's line.
type verdict int

const (
	starts  verdict = iota // now
	waits                  // it stays where it is
	refused                // it is not run
)

// advance begins what can begin of a job, and has the rest wait.
func (s *session) advance(e *entry) {
	delete(s.crowd, e)
	if s.ctx.Err() != nil {
		return
	}
	s.expire(e)
	for it := e.head(); it != nil; it = e.head() {
		why, v := s.judge(e, it)
		if v == waits {
			if s.makeWay(e, why) {
				continue
			}
			if why == ReasonConcurrency {
				s.crowd[e] = it.due
			}
			break
		}
		e.take(it)
		if v == starts {
			s.begin(e, it)
		} else {
			s.refuse(e, it, why)
		}
	}
	s.requeue(e)
}

// head is what is first in line: the backlog comes last. nil: nothing waits.
func (e *entry) head() *item {
	if len(e.line) > 0 {
		return e.line[0]
	}
	if e.backlog.empty() {
		return nil
	}
	slot := e.job.Schedule.Next(e.backlog.after)
	if slot.IsZero() || slot.After(e.backlog.until) {
		e.backlog = backlog{}
		return nil
	}
	return &item{
		run:   Run{Slot: slot, Trigger: TriggerCatchUp, Attempt: 1},
		after: e.backlog.after, due: e.due(slot), serial: true, why: e.backlog.reason,
	}
}

// take takes the first off the line.
func (e *entry) take(it *item) {
	if it.serial {
		e.backlog.after = it.run.Slot
		return
	}
	e.line[0] = nil
	e.line = e.line[1:]
}

// judge says whether a run may begin now, and if not, what is in its way.
func (s *session) judge(e *entry, it *item) (Reason, verdict) {
	if it.manual() && it.ctx.Err() != nil {
		return "", refused // whoever asked has gone, and will ask again
	}
	// The ledger takes slots in order only.
	if !it.manual() && e.asking() != nil {
		return ReasonLedger, waits
	}
	if why, v := s.overlap(e, it); v != starts {
		return why, v
	}
	if it.slotted() && (!e.known || e.recording() || e.mending > 0 && time.Now().Before(e.mendBy)) {
		return ReasonLedger, waits
	}
	if s.limit > 0 && !e.always() && s.occupied >= s.limit {
		return ReasonConcurrency, waits
	}
	return "", starts
}

// overlap judges a run while others of its job may go on.
func (s *session) overlap(e *entry, it *item) (Reason, verdict) {
	switch {
	case !e.busy():
		return "", starts
	case e.always():
		return ReasonOverlap, refused
	case it.run.Forced:
		return "", starts
	case it.serial:
		return e.backlog.reason, waits
	case (it.rerun || it.behind) && e.job.Overlap != OverlapAllow:
		return ReasonOverlap, waits
	}
	switch e.job.Overlap {
	case OverlapAllow:
		return "", starts
	case OverlapQueueOne:
		return ReasonOverlap, waits
	case OverlapReplace:
		for _, f := range e.flights {
			if f.answered {
				f.cancel(errReplaced)
			}
		}
		return ReasonOverlap, waits
	default:
		return ReasonOverlap, refused
	}
}

// makeWay has earlier ones in line give way to later ones: of slots the latest stays,
// and of all that wait for a run of the same job as well. It reports whether any did.
func (s *session) makeWay(e *entry, why Reason) bool {
	kept := e.line[:0:0]
	var gone []*item
	behind := e.mending > 0 || len(e.line) > 0 && e.line[0].rerun
	for i, it := range e.line {
		it.behind = it.behind || behind && it.slotted()
		later := e.line[i+1:]
		if it.rerun || it.run.Forced || !outdone(it, later, why) {
			it.why = why
			kept = append(kept, it)
			continue
		}
		gone = append(gone, it)
	}
	e.line = kept
	for _, it := range gone {
		s.refuse(e, it, why)
	}
	return len(gone) > 0
}

// outdone reports whether something later in line takes a run's place.
func outdone(it *item, later []*item, why Reason) bool {
	for _, l := range later {
		if why == ReasonOverlap || it.slotted() && l.slotted() {
			return true
		}
	}
	return false
}

// refuse tells whom it concerns that a run is not to be.
func (s *session) refuse(e *entry, it *item, why Reason) {
	switch {
	case it.manual():
		answer(it.reply, fmt.Errorf("start job %q: %w", e.job.Name, ErrRunning))
	case it.retried():
		s.void(e, it, errOverlap)
	default:
		s.missItem(e, it, why)
	}
}

// admit lets those begin that wait for room, the one first that was due first.
func (s *session) admit() {
	for len(s.crowd) > 0 && s.ctx.Err() == nil && (s.limit == 0 || s.occupied < s.limit) {
		var first *entry
		for e, due := range s.crowd {
			if first == nil || due.Before(s.crowd[first]) || due.Equal(s.crowd[first]) && e.job.Name < first.job.Name {
				first = e
			}
		}
		s.advance(first)
	}
}
