package plan

import "time"

// OnLost says what becomes of a run that was lost with its leader.
type OnLost string

// What becomes of lost runs.
const (
	OnLostSkip  OnLost = "skip"  // it stays lost
	OnLostRerun OnLost = "rerun" // the next leader runs its slot again
)

// Retry says how often a slot is tried again whose run has failed or timed out, and when.
type Retry struct {
	Limit    int           // how often; 0: never
	Delay    time.Duration // before the first retrial; it doubles with each
	MaxDelay time.Duration // bounds it; 0: nothing does
}

// At is when a slot is tried again whose attempt, counted from 1, has failed; zero: never, since it was the last
// one, or the job's next slot is due before. Chance, 0 or more and below 1, makes the delay a fifth shorter or
// longer. Next is when the next slot is due; zero: the job has none.
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

// delay is how long to wait after an attempt, before chance makes it shorter or longer.
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

// Fate is what becomes of a slot that is to be run again.
type Fate string

// The fates.
const (
	Dropped   Fate = "dropped"   // it is not run again: a later slot takes its place, or the job does not want it
	Withdrawn Fate = "withdrawn" // the ledger still has it: it is claimed and recorded as cancelled, so that no term runs it
	Pending   Fate = "pending"   // it is run when it is due
	First     Fate = "first"     // it is run before the slots that wait
)

// Again is what of a job decides which of its slots are run again.
type Again struct {
	Retry  Retry
	OnLost OnLost
}

// Repeat is a slot that is to be run again, as far as it matters whether that happens.
type Repeat struct {
	Cancelled bool // an operator does not want it, or the job is gone
	Later     bool // a later slot of this term was begun, or waits
	Passed    bool // slots have passed since
	Backlog   bool // slots are run one after the other, by CatchUpAll
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

// Inherited decides about a retrial that an earlier term has left. A job whose lost runs are run again is owed it:
// slots that passed meanwhile do not take its place.
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
