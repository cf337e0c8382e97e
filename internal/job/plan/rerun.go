package plan

import "time"

// OnLost is the policy for a run that was lost with its leader.
type OnLost string

// These are the values of OnLost.
const (
	OnLostSkip  OnLost = "skip"  // the run stays lost
	OnLostRerun OnLost = "rerun" // the next leader runs its slot again
)

// Retry is the policy for slots whose run has failed or timed out.
type Retry struct {
	Limit    int           // number of retrials; 0: none
	Delay    time.Duration // before the first retrial; the delay doubles with each further retrial
	MaxDelay time.Duration // upper bound of the delay; 0: no bound
}

// At returns the time of the retrial of a slot. The argument failed is the time at which the last attempt failed, and the argument attempt
// is the number of that attempt, counted from 1. It returns zero if there is no retrial, because the attempt was the last attempt or the
// job's next slot is due before the retrial. The argument chance, in [0, 1), varies the delay by up to a fifth. The argument next is the
// time of the next slot, or zero.
func (r Retry) At(failed time.Time, attempt int, next time.Time, chance float64) time.Time {
	if attempt > r.Limit {
		return time.Time{}
	}
	delay := r.delay(attempt)
	at := failed.Add(delay*4/5 + time.Duration(chance*float64(delay*2/5))).Truncate(time.Millisecond)
	if !next.IsZero() && !at.Before(next) {
		return time.Time{}
	}
	return at
}

// delay returns the delay after an attempt, before the random variation.
func (r Retry) delay(attempt int) time.Duration {
	const longest = 366 * 24 * time.Hour // no schedule's next slot is later, except for a few that are never retried
	most := longest
	if r.MaxDelay > 0 {
		most = min(r.MaxDelay, longest)
	}
	delay := r.Delay
	for i := 1; i < attempt && delay < most; i++ {
		delay *= 2
	}
	return min(delay, most)
}

// RerunDecision is the decision about a slot that is to be run again.
type RerunDecision string

// These are the values of RerunDecision.
const (
	Dropped   RerunDecision = "dropped"   // not run again: a later slot replaces it, or the policy says so
	Withdrawn RerunDecision = "withdrawn" // claimed and recorded as cancelled, so that no term runs it
	Pending   RerunDecision = "pending"   // run when the retrial is due
	First     RerunDecision = "first"     // run before all waiting slots
)

// RerunPolicy is a job's policy for running slots again.
type RerunPolicy struct {
	Retry  Retry
	OnLost OnLost
}

// RerunState is the situation of a slot that is to be run again.
type RerunState struct {
	Cancelled bool // cancelled by an operator, or the job was removed
	Later     bool // a later slot of this term was begun, or waits
	Passed    bool // other slots have passed since
	Backlog   bool // slots are being run one after the other, by CatchUpAll
}

// Failed returns the decision about a slot whose run has failed in this term.
func (a RerunPolicy) Failed(r RerunState) RerunDecision {
	switch {
	case r.Cancelled, a.Retry.Limit == 0:
		return Withdrawn
	case r.Later:
		return Dropped
	}
	return Pending
}

// Inherited returns the decision about a retrial that an earlier term left pending. With OnLostRerun the retrial is kept: slots that have
// passed since do not replace the retrial.
func (a RerunPolicy) Inherited(r RerunState) RerunDecision {
	owed := a.OnLost == OnLostRerun
	switch {
	case r.Later, !owed && (a.Retry.Limit == 0 || r.Passed):
		return Dropped
	case r.Cancelled:
		return Withdrawn
	case owed && r.Backlog:
		return First
	}
	return Pending
}

// Lost returns the decision about a slot whose run was lost with its leader.
func (a RerunPolicy) Lost(r RerunState) RerunDecision {
	switch {
	case a.OnLost != OnLostRerun, r.Later:
		return Dropped
	case r.Cancelled:
		return Withdrawn
	}
	return First
}
