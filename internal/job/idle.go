package job

import (
	"context"
	"errors"
	"time"
)

// lookTimeout limits the time of a call of [Workload].Idle, because the other runs that came due in the same round of the loop wait for its
// answer.
const lookTimeout = 250 * time.Millisecond

// idleCandidates are the runs that came due in one round of the loop and may have nothing to do. Runs with nothing to do are claimed and
// recorded together, without a goroutine for each.
//
// The check for work precedes the claim, and the run counts as started when the check began. Later changes belong to the next slot, like
// changes after a run has read its input. If the term ends between check and claim, the slot is unclaimed and the next leader catches up on
// it.
type idleCandidates []*execution

// tryIdleCandidates tries the runs that came due in this round of the loop and may have nothing to do.
func (s *session) tryIdleCandidates() {
	groups := map[string]idleCandidates{}
	for _, x := range s.idleCandidates {
		groups[x.f.job.IdleGroup] = append(groups[x.f.job.IdleGroup], x)
	}
	for group, some := range groups {
		go some.try(s, s.idle, group != "")
	}
	s.idleCandidates = nil
}

// try claims and records the runs that have nothing to do, and starts all others in the usual way. The whole group needs only one turn of
// the StartLimiter. If the argument apart is true, the function idle asks a server other than the ledger's server. In this case try calls
// idle before it waits for the turn, because that server may hang.
func (all idleCandidates) try(s *session, idle func(context.Context, []string) []bool, apart bool) {
	tooLate, stop := all.patience(s)
	defer stop()
	var nothing idleCandidates
	if apart {
		nothing = all.check(s, idle)
	}
	if s.claimLimiter.Acquire(s.ctx, tooLate, s.HoldsStarts) == nil {
		if !apart {
			nothing = all.check(s, idle)
		}
		nothing.claim(s)
		s.claimLimiter.Release()
	} else {
		for _, x := range nothing {
			x.idle = nil
		}
	}
	var done idleCandidates
	for _, x := range all {
		if x.idle != nil && x.said == nil {
			done = append(done, x)
		} else {
			go x.run()
		}
	}
	done.end(s)
}

// patience returns a channel that fires when the first of the claims must be given up. The channel is nil if no claim has a time limit.
func (all idleCandidates) patience(s *session) (tooLate <-chan time.Time, stop func()) {
	var first time.Time
	for _, x := range all {
		if at := x.f.giveUp; !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() {
		return nil, func() {}
	}
	timer := time.NewTimer(first.Sub(s.now()))
	return timer.C, func() { timer.Stop() }
}

// check returns the runs that have nothing to do.
func (all idleCandidates) check(s *session, idle func(context.Context, []string) []bool) (nothing idleCandidates) {
	began := s.now()
	names := make([]string, len(all))
	for i, x := range all {
		names[i] = x.f.run.Job
	}
	ctx, cancel := context.WithTimeout(s.ctx, lookTimeout)
	defer cancel()
	for i, is := range idle(ctx, names) {
		if x := all[i]; is && x.ctx.Err() == nil && x.asks.Err() == nil {
			x.idle = &Record{Run: x.f.run, State: StateSucceeded, Started: began, Finished: s.now()}
			nothing = append(nothing, x)
		}
	}
	return nothing
}

// claim claims all runs with one request to the ledger, and stores the answer to each claim.
func (all idleCandidates) claim(s *session) {
	if len(all) == 0 {
		return
	}
	recs := make([]Record, len(all))
	for i, x := range all {
		x.f.asked.Store(true)
		recs[i] = *x.idle
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.ClaimTimeout)
	defer cancel()
	for i, err := range s.ledger.ClaimIdle(ctx, recs) {
		s.cfg.OnAttempt(recs[i].Job, err)
		all[i].said = err
	}
}

// end removes and reports the runs that are claimed and recorded.
func (all idleCandidates) end(s *session) {
	if len(all) == 0 {
		return
	}
	s.post(func() {
		for _, x := range all {
			s.hand(x.place, func(m *machine) { m.answered(x.f, nil) })
			s.hand(x.place, func(m *machine) { m.settle(x.f, *x.idle, nil, 0, nil) })
		}
	})
	for _, x := range all {
		s.cfg.OnStart(x.f.run)
		s.cfg.OnFinish(*x.idle)
		s.reports.run(&x.place.failures, *x.idle, nil)
	}
}

// conclusive reports whether the answer to a claim is certain.
func conclusive(err error) bool {
	for _, answer := range []error{ErrNotLeader, ErrPaused, ErrAhead, ErrSlotTaken, ErrDone} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return err == nil
}
