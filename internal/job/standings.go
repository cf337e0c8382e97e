package job

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// askStandings asks the ledger until it answers or the term ends. Slots of the term wait
// for it: the first of them would settle all earlier ones, and what was missed would stay
// unknown. Fresh jobs came with an update.
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
			s.log.Log(s.reports.loud(zapcore.WarnLevel, err), "cannot read which slots were run last; will try again, the jobs wait for it",
				zap.Error(err))
		}
		if pause(s.ctx, delay) != nil {
			return
		}
	}
}

// askInParts asks about all jobs, some at a time, until the ledger does not answer. It
// returns the jobs of which it did not.
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

// readStandings asks once, and returns the jobs whose standing is still unknown. If the
// ledger answers with an error, some of them are asked about by halves: what is wrong with
// one job's data must not hold the others up. Not if it does not answer at all.
func (s *session) readStandings(names []string, fresh, some bool) ([]string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.ClaimTimeout)
	defer cancel()
	standings, err := s.ledger.Standings(ctx, names)
	if err != nil { // to read it may be possible where nothing can be recorded
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

// learn takes the ledger's word of how jobs stood when the term began. A job that it
// does not know is new, or the ledger has lost its data: which slots were run is not
// known, and running one twice is worse than not at all. That is put on record.
func (s *session) learn(names []string, standings map[string]Standing, fresh bool) {
	for _, name := range names {
		if p := s.jobs[name]; p != nil && !p.known && !p.removed {
			st, known := standings[name]
			s.hand(p, func(m *machine) { m.learn(st, known, fresh) })
		}
	}
}
