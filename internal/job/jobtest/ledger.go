// Package jobtest checks that a job.Ledger follows the rules of the interface, and provides a ledger that fails on demand for tests of
// runners.
//
//	Conformance  the test suite that every ledger must pass: the ledger in Redis, and the ledger of this package
//	Ledger       a job.Ledger in memory, whose claims, records and misses a test can read
//	Op, Fault    a call of the ledger, and what happens to it: a delay, a lost request, a lost reply
//
// The rules that Conformance checks:
//
//   - Only one claim of a slot is granted. From then on no claim of an earlier slot is granted. The same run may ask again, and gets the
//     same answer.
//   - Only the owner of the lock claims slots and records misses. The end of a run is also recorded after its term, and only once.
//   - A run is open from its claim to its end. A lost run is closed, and its retrial recorded, in one step.
//   - A pending retrial is taken once. The claim of a later slot drops it.
//   - No later term catches up on a slot that is recorded as missed.
//
// Faults are like the faults of a network: a request whose caller has given up may still be executed, and an error does not say whether
// the ledger executed the request. So a runner that passes the tests with faults does not rely on replies.
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

// ErrUnreachable is the error of a call that fails because a test wants it to fail.
var ErrUnreachable = errors.New("jobtest: the ledger is unreachable")

// ahead limits how far a slot may be ahead of the ledger's clock.
const ahead = time.Minute

// Ledger implements job.Ledger in memory, for tests.
type Ledger struct {
	// Forgetful makes the ledger answer ErrSlotTaken when a run repeats its own claim.
	Forgetful bool
	// Disturb decides about each call. A nil Disturb disturbs no call. The job.Run is zero for OpResumeStates. For OpMiss its slot is the
	// latest missed slot.
	Disturb func(Op, job.Run) Fault
	// Clock is the ledger's clock; nil means the system's clock.
	Clock func() time.Time

	mu      sync.Mutex
	owner   string
	jobs    map[string]*state
	granted []job.Run
	records []job.Record
	missed  []job.Missed
	idle    []job.Record // records of runs that found nothing to do
}

var _ job.Ledger = (*Ledger)(nil)

// state is the state of one job in the ledger.
type state struct {
	last   time.Time // the slot that was claimed last
	missed time.Time // no later term catches up on slots up to this time
	bar    time.Time // the last slot that is recorded as missed
	latest string    // ID of the run that was granted last
	open   []job.Record
	retry  *job.Retrial
	asked  string // the ID under which a manual run was requested
	paused string // the reason of the pause; "" means that the job is not paused

	refused string // the ID of a retrial that a pause has refused
}

// NewLedger returns an empty Ledger, and gives its lock to the owner.
func NewLedger(owner string) *Ledger { return &Ledger{owner: owner, jobs: make(map[string]*state)} }

// at returns the state of a job.
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

// SetOwner gives the lock to another owner. If owner is "", the lock is free.
func (l *Ledger) SetOwner(owner string) { l.locked(func() { l.owner = owner }) }

// SetLast sets the last claimed slot of a job.
func (l *Ledger) SetLast(name string, slot time.Time) { l.locked(func() { l.at(name).last = slot }) }

// SetOpen adds a claimed run without a recorded end.
func (l *Ledger) SetOpen(rec job.Record) {
	l.locked(func() {
		s := l.at(rec.Job)
		s.last, s.latest, s.open = rec.Slot, rec.ID, append(s.open, rec)
	})
}

// SetRetry adds a pending retrial of a job.
func (l *Ledger) SetRetry(name string, r job.Retrial) { l.locked(func() { l.at(name).retry = &r }) }

// Ask requests a manual run of a job under an ID.
func (l *Ledger) Ask(name, id string) { l.locked(func() { l.at(name).asked = id }) }

// Pause pauses a job. If reason is "", it resumes the job.
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

// Idle returns the runs that found nothing to do, in order. Granted and Records also return these runs.
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

// Retry returns the pending retrial of a job, or nil.
func (l *Ledger) Retry(name string) *job.Retrial {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at(name).retry
}

// ResumeStates implements job.Ledger.
func (l *Ledger) ResumeStates(ctx context.Context, jobs []string) (map[string]job.ResumeState, error) {
	standings := make(map[string]job.ResumeState)
	err := l.carry(ctx, OpResumeStates, job.Run{}, func() error {
		for _, name := range jobs {
			s := l.jobs[name]
			if s == nil || s.last.IsZero() && s.missed.IsZero() && len(s.open) == 0 {
				continue
			}
			st := job.ResumeState{Last: s.last, Open: slices.Clone(s.open), Retry: s.retry}
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

// take checks that a run may be claimed, and uses up what the claim needs: a slot, a pending retrial, or the request for a manual run.
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
		s.retry, s.refused = nil, "" // the retrial is settled, also if it is paused
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
		s.retry = nil // a later slot removes the retrial, even if the job is paused
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
			return nil // the end is recorded already
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

// hasRun reports whether the history contains a run of the slot.
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
