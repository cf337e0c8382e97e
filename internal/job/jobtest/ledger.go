// Package jobtest has what tests of job ledgers and of their callers share: a ledger
// in memory that fails on demand, and the suite that every job.Ledger must pass.
package jobtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"baton/internal/job"
)

// ErrUnreachable is what a Ledger answers with when it is made to fail.
var ErrUnreachable = errors.New("jobtest: the ledger is unreachable")

// ahead is how far a slot may lie ahead of the ledger's clock.
const ahead = time.Minute

// Ledger is a job.Ledger in memory.
type Ledger struct {
	// Forgetful makes a claim asked again by its own run answer ErrSlotTaken.
	Forgetful bool
	// Disturb decides about each call; nil: all goes well. The run is zero for
	// OpStandings, and has the latest slot for OpMiss.
	Disturb func(Op, job.Run) Fault
	// Clock is the ledger's; nil: the system's.
	Clock func() time.Time

	mu      sync.Mutex
	owner   string
	jobs    map[string]*state
	granted []job.Run
	records []job.Record
	missed  []job.Missed
	idle    []job.Record // of runs that found nothing to do
}

var _ job.Ledger = (*Ledger)(nil)

// state is what the ledger knows of one job.
type state struct {
	last   time.Time // slot that was claimed
	missed time.Time // slots up to here are recorded as missed, or none
	bar    time.Time // the last slot that is recorded as missed
	latest string    // ID of the run that was granted last
	open   []job.Record
	retry  *job.Retrial
	asked  string // ID that a manual run was asked for by
	paused string // why

	refused string // ID of a retrial that a pause has refused
}

// NewLedger returns an empty Ledger whose lock that owner holds.
func NewLedger(owner string) *Ledger { return &Ledger{owner: owner, jobs: make(map[string]*state)} }

// at returns what is known of a job.
func (l *Ledger) at(name string) *state {
	if l.jobs[name] == nil {
		l.jobs[name] = &state{}
	}
	return l.jobs[name]
}

func (l *Ledger) locked(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

// SetOwner gives the lock to another owner; "" to none.
func (l *Ledger) SetOwner(owner string) { l.locked(func() { l.owner = owner }) }

// SetLast pretends that a slot was claimed long ago.
func (l *Ledger) SetLast(name string, slot time.Time) { l.locked(func() { l.at(name).last = slot }) }

// SetOpen pretends that a run was claimed, of which nothing was recorded since.
func (l *Ledger) SetOpen(rec job.Record) {
	l.locked(func() {
		s := l.at(rec.Job)
		s.last, s.latest, s.open = rec.Slot, rec.ID, append(s.open, rec)
	})
}

// SetRetry pretends that a retrial is pending.
func (l *Ledger) SetRetry(name string, r job.Retrial) { l.locked(func() { l.at(name).retry = &r }) }

// Ask asks for a manual run of a job under an ID.
func (l *Ledger) Ask(name, id string) { l.locked(func() { l.at(name).asked = id }) }

// Pause pauses a job; "" resumes it.
func (l *Ledger) Pause(name, reason string) { l.locked(func() { l.at(name).paused = reason }) }

// Granted returns the claims that were granted, in order.
func (l *Ledger) Granted() []job.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.granted)
}

// Records returns the finished runs, in order.
func (l *Ledger) Records() []job.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.records)
}

// Idle returns the runs that found nothing to do, in order: they are among the others, too.
func (l *Ledger) Idle() []job.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.idle)
}

// Missed returns the slots that were recorded as missed, in order.
func (l *Ledger) Missed() []job.Missed {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.missed)
}

// Retry returns the retrial of a job that is pending; nil: none is.
func (l *Ledger) Retry(name string) *job.Retrial {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at(name).retry
}

// Standings implements job.Ledger.
func (l *Ledger) Standings(ctx context.Context, jobs []string) (map[string]job.Standing, error) {
	standings := make(map[string]job.Standing)
	err := l.carry(ctx, OpStandings, job.Run{}, func() error {
		for _, name := range jobs {
			s := l.jobs[name]
			if s == nil || s.last.IsZero() && s.missed.IsZero() && len(s.open) == 0 {
				continue
			}
			st := job.Standing{Last: s.last, Open: slices.Clone(s.open), Retry: s.retry}
			if s.missed.After(st.Last) {
				st.Last = s.missed
			}
			standings[name] = st
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return standings, nil
}

// Claim implements job.Ledger.
func (l *Ledger) Claim(ctx context.Context, r job.Run) error {
	return l.carry(ctx, OpClaim, r, func() error {
		if l.owner == "" || l.owner != r.Term.Owner {
			return fmt.Errorf("claim: %w", job.ErrNotLeader)
		}
		s := l.at(r.Job)
		if l.wasIdle(r.ID) {
			return fmt.Errorf("claim: %w", job.ErrDone)
		}
		if !l.Forgetful && slices.ContainsFunc(s.open, func(o job.Record) bool { return o.ID == r.ID }) {
			return nil
		}
		if err := l.take(s, r); err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		s.latest = r.ID
		s.open = append(s.open, job.Record{Run: r, State: job.StateRunning, Started: time.Now().Round(0)})
		l.granted = append(l.granted, r)
		return nil
	})
}

// ClaimIdle implements job.Ledger.
func (l *Ledger) ClaimIdle(ctx context.Context, recs []job.Record) []error {
	answers := make([]error, len(recs))
	for i, rec := range recs {
		answers[i] = l.carry(ctx, OpClaimIdle, rec.Run, func() error {
			if l.owner == "" || l.owner != rec.Term.Owner {
				return fmt.Errorf("claim: %w", job.ErrNotLeader)
			}
			s := l.at(rec.Job)
			if l.wasIdle(rec.ID) {
				return job.ErrDone
			}
			if err := l.take(s, rec.Run); err != nil {
				return fmt.Errorf("claim: %w", err)
			}
			s.latest = rec.ID
			l.granted, l.records, l.idle = append(l.granted, rec.Run), append(l.records, rec), append(l.idle, rec)
			return nil
		})
	}
	return answers
}

func (l *Ledger) wasIdle(id string) bool {
	return slices.ContainsFunc(l.idle, func(rec job.Record) bool { return rec.ID == id })
}

// take takes what a run needs: a slot, its retrial, or that it was asked for.
func (l *Ledger) take(s *state, r job.Run) error {
	take := func() {}
	switch r.Trigger {
	case job.TriggerManual:
		if s.asked != r.ID {
			return job.ErrSlotTaken
		}
		take = func() { s.asked = "" }
	case job.TriggerRetry:
		pending := s.retry != nil && s.retry.Slot.Equal(r.Slot) && s.retry.Attempt == r.Attempt
		if !pending && s.refused != r.ID {
			return job.ErrSlotTaken
		}
		s.retry, s.refused = nil, "" // dealt with, also if it is paused
		if s.paused != "" {
			s.refused = r.ID
		}
	default:
		switch {
		case !r.Slot.After(s.last), !r.Slot.After(s.bar):
			return job.ErrSlotTaken
		case l.isAhead(r.Slot):
			return job.ErrAhead
		}
		s.retry = nil // the same
		take = func() { s.last = r.Slot }
	}
	if s.paused != "" {
		return &job.PausedError{Reason: s.paused}
	}
	take()
	return nil
}

func (l *Ledger) isAhead(slot time.Time) bool {
	now := time.Now()
	if l.Clock != nil {
		now = l.Clock()
	}
	return slot.Sub(now) > ahead
}

// Finish implements job.Ledger.
func (l *Ledger) Finish(ctx context.Context, rec job.Record) error {
	return l.carry(ctx, OpFinish, rec.Run, func() error {
		s := l.at(rec.Job)
		open := slices.IndexFunc(s.open, func(o job.Record) bool { return o.ID == rec.ID })
		before := slices.IndexFunc(l.records, func(have job.Record) bool { return have.ID == rec.ID })
		lost := before >= 0 && l.records[before].State == job.StateLost
		if before >= 0 && !lost || rec.State == job.StateLost && open < 0 {
			return nil // recorded already
		}
		if open >= 0 {
			s.open = slices.Delete(s.open, open, open+1)
		}
		if lost {
			l.records[before] = rec
			return nil
		}
		l.records = append(l.records, rec)
		if rec.Pauses && s.latest == rec.ID {
			s.paused = cmp.Or(rec.Error, "by a run")
		}
		if !rec.RetryAt.IsZero() && !s.last.After(rec.Slot) {
			s.retry = &job.Retrial{Slot: rec.Slot, Attempt: rec.Attempt + 1, At: rec.RetryAt}
		}
		return nil
	})
}

// hasRun reports whether the history has a run of a slot.
func (l *Ledger) hasRun(name string, slot time.Time) bool {
	return slices.ContainsFunc(l.records, func(r job.Record) bool {
		return r.Job == name && r.Slot.Equal(slot) && r.Trigger != job.TriggerManual
	})
}

// Miss implements job.Ledger.
func (l *Ledger) Miss(ctx context.Context, t job.Term, m job.Missed) error {
	return l.carry(ctx, OpMiss, job.Run{Job: m.Job, Slot: m.Slot, Term: t}, func() error {
		switch {
		case l.owner == "" || l.owner != t.Owner:
			return fmt.Errorf("miss: %w", job.ErrNotLeader)
		case l.isAhead(m.Slot):
			return fmt.Errorf("miss: %w", job.ErrAhead)
		}
		for _, have := range slices.Backward(l.missed) {
			if have.Job == m.Job {
				if have.Slot.Equal(m.Slot) && have.First.Equal(m.First) && have.Reason == m.Reason {
					return nil
				}
				break
			}
		}
		s := l.at(m.Job)
		if m.Reason == job.ReasonLedger && m.Count == 1 && (s.last.Equal(m.Slot) || l.hasRun(m.Job, m.Slot)) {
			return fmt.Errorf("miss: %w", job.ErrSlotTaken)
		}
		if m.Reason == job.ReasonUnknown && m.Count == 0 && !(s.last.IsZero() && s.missed.IsZero()) {
			return nil
		}
		if m.Slot.After(s.missed) {
			s.missed = m.Slot
		}
		if m.Count > 0 && m.Slot.After(s.bar) {
			s.bar = m.Slot
		}
		if m.Count > 0 || m.Reason == job.ReasonUnknown {
			l.missed = append(l.missed, m)
		}
		return nil
	})
}
