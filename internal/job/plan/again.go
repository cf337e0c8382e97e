package plan

import "time"

// OnLost is the policy for a run that was lost with its leader.
type OnLost string

// The policies for lost runs.
const (
	OnLostSkip  OnLost = "skip"  // it stays lost
	OnLostRerun OnLost = "rerun" // the next leader runs its slot again
)

// Retry is the policy for slots whose run has failed or timed out.
type Retry struct {
	Limit    int           // number of retrials; 0: none
	Delay    time.Duration // before the first retrial; it doubles with each
	MaxDelay time.Duration // upper bound of the delay; 0: none
}

// At is the time of the retrial after a failed attempt, counted from 1; zero: none, because it was the last attempt
// or the job's next slot is due before. chance, in [0, 1), varies the delay by up to a fifth. next is the time of the
// next slot; zero: none.
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

// delay is the delay after an attempt, before chance.
func (r Retry) delay(attempt int) time.Duration {
	const longest = 366 * 24 * time.Hour // no schedule's next slot is later, but for a few that are never retried
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

// Fate is the decision about a slot that is to be run again.
type Fate string

// The fates.
const (
	Dropped   Fate = "dropped"   // not run again: a later slot replaces it, or the policy says so
	Withdrawn Fate = "withdrawn" // claimed and recorded as cancelled, so that no term runs it
	Pending   Fate = "pending"   // run when it is due
	First     Fate = "first"     // run before all waiting slots
)

// Again is a job's policy for running slots again.
type Again struct {
	Retry  Retry
	OnLost OnLost
}

// Repeat is the situation of a slot that is to be run again.
type Repeat struct {
	Cancelled bool // cancelled by an operator, or the job is gone
	Later     bool // a later slot of this term was begun, or waits
	Passed    bool // slots have passed since
	Backlog   bool // slots are being run one after the other, by CatchUpAll
}

// Failed decides about a slot whose run has failed in this term.
func (a Again) Failed(r Repeat) Fate {
	switch {
	case r.Cancelled, a.Retry.Limit == 0:
		return Withdrawn
	case r.Later:
		return Dropped
	}
	return Pending
}

// Inherited decides about a retrial that an earlier term left pending. With OnLostRerun the retrial is kept: slots that
// passed meanwhile do not replace it.
func (a Again) Inherited(r Repeat) Fate {
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

// Lost decides about a slot whose run was lost with its leader.
func (a Again) Lost(r Repeat) Fate {
	switch {
	case a.OnLost != OnLostRerun, r.Later:
		return Dropped
	case r.Cancelled:
		return Withdrawn
	}
	return First
}
