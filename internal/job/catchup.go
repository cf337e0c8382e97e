package job

import (
	"context"
	"time"

	"go.uber.org/zap"
)

const (
	retryMin = 100 * time.Millisecond
	retryMax = 2 * time.Second
	// knowing is for how long the slots of a term wait for word of what was before: the
	// first of them would bar all earlier ones.
	knowing = 3 * time.Second
	// mending is for how long a slot waits until it is recorded that the run of an
	// earlier one was lost, and is to be run again.
	mending = 10 * time.Second
)

// askStandings asks the ledger until it answers or the term ends. What is due now
// does not wait for long: it matters more than what was due before. Fresh jobs came
// with an update.
func (s *session) askStandings(names []string, fresh bool) {
	if len(names) == 0 {
		return
	}
	for delay := retryMin; ; delay = min(2*delay, retryMax) {
		ctx, cancel := context.WithTimeout(s.ctx, s.cfg.ClaimTimeout)
		standings, err := s.ledger.Standings(ctx, names)
		cancel()
		if err == nil {
			s.tell(func() { s.learn(names, standings, fresh) })
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

// learn takes the ledger's word of how jobs stood when the term began. A job that it
// does not know is new, or the ledger has lost its data: which slots were run is not
// known, and running one twice is worse than not at all. That is put on record.
func (s *session) learn(names []string, standings map[string]Standing, fresh bool) {
	for _, name := range names {
		e := s.entries[name]
		if e == nil || e.known || e.removed {
			continue
		}
		e.known = true
		st, known := standings[name]
		switch {
		case known:
			s.resume(e, st, fresh)
		case !e.always():
			s.missUnknown(e)
		}
		s.advance(e)
	}
}

func (s *session) missUnknown(e *entry) {
	s.miss(e, Missed{Job: e.job.Name, Reason: ReasonUnknown, First: s.start, Slot: s.start})
}

// resume goes on where the last term has ended: what was lost with it, what passed
// since, what is to be tried again.
func (s *session) resume(e *entry, st Standing, fresh bool) {
	if st.Last.IsZero() && !e.always() { // it was run by hand only, say
		s.mend(e, st.Open, false)
		s.missUnknown(e)
		return
	}
	if e.always() {
		e.claimed = latest(e.claimed, st.Last)
		s.mend(e, st.Open, false)
		return
	}
	if e.tried && st.Last.After(s.start) {
		// The ledger tells of a slot of this term only: what was before is lost.
		s.mend(e, st.Open, false)
		s.missUnknown(e)
		return
	}
	now := s.now()
	if st.Last.Sub(now) > onTime {
		s.log.Warn("the last slot of the job lies ahead of this node's clock; the job waits until the clock has passed it",
			zap.String("job", e.job.Name), zap.Time("slot", st.Last))
	}
	j := e.job
	if fresh {
		j.CatchUp = CatchUpNone
	}
	p := planCatchUp(j, st.Last, e.base, e.nominal(now))
	if e.tried && !p.last.IsZero() {
		// A slot of this term went first, and the ledger takes only later ones.
		p.slot, p.backlog = time.Time{}, backlog{}
		p.missed = passedOver(j, ReasonNoLeader, st.Last, p.last, time.Time{})
	}
	e.base, e.dealt = earliest(e.base, st.Last), latest(e.dealt, st.Last)
	if !e.next.IsZero() && !e.next.After(st.Last) {
		e.prev, e.next = st.Last, e.job.Schedule.Next(st.Last)
	}
	s.mend(e, st.Open, !p.slot.IsZero())
	s.resumeRetry(e, st.Retry, p)
	s.catchUp(e, p)
}

// catchUp carries out what is to be done of the slots that passed before this term.
func (s *session) catchUp(e *entry, p plan) {
	e.holding++
	s.miss(e, p.missed)
	switch {
	case !p.backlog.empty():
		if !e.backlog.empty() { // slots of this term wait for those before them
			p.backlog.until = e.backlog.until
		}
		e.backlog = p.backlog
	case !p.slot.IsZero():
		after := p.missed.Slot
		if p.missed.Count == 0 {
			after = e.dealt
		}
		e.tried = true
		e.line = append(e.line, &item{
			run: Run{Slot: p.slot, Trigger: p.trigger, Attempt: 1}, after: after, due: e.due(p.slot),
		})
	}
	s.advance(e)
	e.holding--
	s.release(e)
}

// resumeRetry goes on with a retrial that an earlier term has left. It is given up if
// a later slot has passed, unless it is owed: of a job whose lost runs are run again.
func (s *session) resumeRetry(e *entry, r *Retrial, p plan) {
	switch {
	case r == nil || e.tried || !p.slot.IsZero():
	case e.job.Rerun:
		e.retry = &retrial{Retrial: *r, rerun: true}
		if !p.backlog.empty() {
			e.line, e.retry = append(e.line, e.retry.item(e)), nil
		}
	case e.job.Retry.Limit > 0 && p.last.IsZero():
		e.retry = &retrial{Retrial: *r}
	}
}
