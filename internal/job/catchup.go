package job

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"
)

const (
	retryMin = 100 * time.Millisecond
	retryMax = 2 * time.Second
	// patience is for how long a slot waits until it is recorded what became of earlier
	// ones: that they were missed, or that the run of one was lost and is to be run again.
	// It outlasts outages; what the ledger refuses for good must not stop the job for long.
	patience = 5 * time.Minute
	// askAtOnce is how many jobs one question is about: of thousands a ledger that is slow
	// would not tell in time, however often it is asked.
	askAtOnce = 250
)

// askStandings asks the ledger until it answers or the term ends. Slots of the term wait
// for it: the first of them would bar all earlier ones, and nobody would know what was
// missed. Fresh jobs came with an update.
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
			s.log.Warn("cannot read which slots were run last; will try again, the jobs wait for it", zap.Error(err))
		}
		if pause(s.ctx, delay) != nil {
			return
		}
	}
}

// askInParts asks about all jobs, some at a time, until the ledger does not answer. It
// returns the jobs of which it has not told.
func (s *session) askInParts(names []string, fresh, some bool) (left []string, first error) {
	for part := range slices.Chunk(names, askAtOnce) {
		if errors.Is(first, context.DeadlineExceeded) || s.ctx.Err() != nil {
			left = append(left, part...)
			continue
		}
		untold, err := s.askHow(part, fresh, some)
		left = append(left, untold...)
		if first == nil {
			first = err
		}
	}
	return left, first
}

// askHow asks once, and returns the jobs of which the ledger has not told. What it
// refuses to tell of many it may tell of some: what is wrong with one job's data must
// not hold the others up. Not if it does not answer at all.
func (s *session) askHow(names []string, fresh, some bool) ([]string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.ClaimTimeout)
	defer cancel()
	standings, err := s.ledger.Standings(ctx, names)
	switch {
	case err == nil:
		s.tell(func() { s.learn(names, standings, fresh) })
		return nil, nil
	case !some || len(names) == 1 || ctx.Err() != nil:
		return names, err
	}
	half := len(names) / 2
	left, _ := s.askHow(names[:half], fresh, true)
	more, _ := s.askHow(names[half:], fresh, true)
	return slices.Concat(left, more), err
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
		e.holding++
		st, known := standings[name]
		switch {
		case known:
			s.resume(e, st, fresh)
		case !e.always():
			s.missUnknown(e)
		}
		e.holding--
		s.release(e)
		s.advance(e)
	}
}

func (s *session) missUnknown(e *entry) {
	from := e.base.Truncate(time.Millisecond)
	s.miss(e, Missed{Job: e.job.Name, Reason: ReasonUnknown, First: from, Slot: from})
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
	s.skip(e, st.Last)
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
	s.mend(e, st.Open, !p.slot.IsZero())
	s.resumeRetry(e, st.Retry, p)
	s.catchUp(e, p)
}

// skip leaves out what an earlier term has dealt with already. That slots of this term
// are among it, is due to a clock that was behind.
func (s *session) skip(e *entry, last time.Time) {
	if !e.next.IsZero() && !e.next.After(last) {
		e.prev, e.next = last, e.job.Schedule.Next(last)
	}
	line := e.line[:0:0]
	for _, it := range e.line {
		if !it.slotted() || it.run.Slot.After(last) {
			line = append(line, it)
		}
	}
	held := e.held[:0:0]
	for _, m := range e.held {
		if m.Slot.After(last) {
			if !m.First.After(last) {
				err := m.Err
				m = passedOver(e.job, m.Reason, last, m.Slot, time.Time{})
				m.Err = err
			}
			held = append(held, m)
		}
	}
	e.line, e.held, e.backlog.after = line, held, latest(e.backlog.after, last)
	e.tried = e.slotWaits() || len(e.held) > 0
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
	e.holding--
	s.release(e)
	s.advance(e)
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
