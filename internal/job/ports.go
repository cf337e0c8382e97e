package job

import (
	"context"
	"errors"
	"time"
)

// Errors that a Ledger answers with, matched by errors.Is.
var (
	// ErrSlotTaken: this slot, or a later one, has been claimed already, here or on another node.
	ErrSlotTaken = errors.New("job: slot is taken")
	// ErrPaused: the job is paused, and why. Asked for a slot, the ledger leaves it to
	// whoever asks to record that it is missed.
	ErrPaused = errors.New("job: paused")
	// ErrAhead: the slot lies further ahead of the ledger's clock than clocks of sound
	// hosts differ. Nothing was claimed: the host's clock is wrong, or the ledger's is.
	ErrAhead = errors.New("job: the slot lies ahead of the ledger's clock")
	// ErrNotLeader: the lock's owner is not the one that asked. Stop starting things.
	ErrNotLeader = errors.New("job: this node no longer leads")
)

// Trigger says why a run was started.
type Trigger string

// The triggers.
const (
	TriggerSchedule Trigger = "schedule"
	TriggerCatchUp  Trigger = "catch_up"
	TriggerRetry    Trigger = "retry"
	TriggerManual   Trigger = "manual"
)

// State is how a run stands.
type State string

// The states of a run.
const (
	StateRunning   State = "running"
	StateSucceeded State = "succeeded"
	StateFailed    State = "failed"
	StateTimedOut  State = "timed_out"
	StateCancelled State = "cancelled" // leadership ended, an operator wanted it, or a later slot took its place
	StateLost      State = "lost"      // its leader is gone and has recorded no end
)

// Term is the leadership that a run belongs to: who claims its slot, and the fencing token.
// The run's context ends with it.
type Term struct {
	NodeID string
	Owner  string
	Epoch  int64
	// FreeSince is when the lock became free before this term, by the clock of the slots.
	// Zero: unknown. Runs do not get it.
	FreeSince time.Time
}

// Run is one execution of a job.
type Run struct {
	ID      string
	Job     string
	Slot    time.Time
	Trigger Trigger
	Attempt int // 1 for the first
	Term    Term
	By      string // of a manual run: who asked for it, and why
	Forced  bool   // a manual run that overlap would have refused
}

// Result is what the work of a run returns.
type Result struct {
	Rows     int64  // rows written
	Dead     int64  // records put aside as dead letters
	ExitCode *int   // of a command that has ended by itself
	Output   string // the end of what a command printed
}

// Func is the work of a job. It returns soon after ctx ends, and what it returns is
// weighed against why ctx ended: an error after its timeout is a run that timed out.
// An error that is ErrNotLeader ends the term: the work has met a newer leader. One
// that is a *PauseError pauses the job.
type Func func(ctx context.Context, r Run) (Result, error)

// PauseError is the error of work that must not be tried again before an operator resumes
// the job.
type PauseError struct{ Err error }

func (e *PauseError) Error() string { return e.Err.Error() }

// Unwrap makes the reason known to errors.Is.
func (e *PauseError) Unwrap() error { return e.Err }

// Record is a finished run, for the history.
type Record struct {
	Run
	State    State
	Started  time.Time
	Finished time.Time
	Result   Result
	Error    string
	Pauses   bool // the job is paused with it, for this Error
	// RetryAt is when the run's slot is to be tried again; zero: it is not.
	RetryAt time.Time
}

// Retrial is another attempt of a slot that is still to come.
type Retrial struct {
	Slot    time.Time
	Attempt int
	At      time.Time // when it is due
}

// Standing is how a job stands when a term begins.
type Standing struct {
	// Last is the last slot that was claimed, or recorded as missed.
	Last time.Time
	// Open are runs without a recorded end. Those of an earlier term are lost.
	Open []Record
	// Retry is pending; nil: none is.
	Retry *Retrial
}

// Ledger remembers over all nodes which slots were started and how the runs ended.
type Ledger interface {
	// Standings returns how each named job stands; a job that nothing is known of is
	// absent: it is new, or the ledger has lost its data.
	Standings(ctx context.Context, jobs []string) (map[string]Standing, error)
	// Claim starts a run: exactly one caller over all nodes succeeds for an attempt of
	// a slot, and only while its term's owner holds the lock and the job is not paused.
	// A first attempt needs a slot later than all that were claimed, or recorded as missed;
	// it drops a retrial that is pending. A further attempt (TriggerRetry) needs that the
	// very retrial is pending, and takes it. A manual run has no slot: it is granted once if
	// its ID was asked for, and lets the slots alone. ErrSlotTaken, ErrNotLeader, ErrPaused,
	// ErrAhead, or an error that leaves the outcome unknown. It may then be asked again with
	// the very same Run: that is granted to the run that holds the slot already, or answered
	// with ErrSlotTaken, but never lets two runs have the slot.
	Claim(ctx context.Context, r Run) error
	// Finish records how a claimed run ended. It pauses the job if the run does and is
	// the job's latest, and notes its retrial if RetryAt is set and no later slot was
	// claimed. Asked again, it records it once. StateLost is recorded only of a run that
	// is open still; a run recorded as lost whose end is recorded after all is
	// recorded anew, and its retrial stays.
	Finish(ctx context.Context, rec Record) error
	// Miss records slots that are not run, while the term's owner holds the lock
	// (ErrNotLeader else): no later term catches up on them. Asked again with the same,
	// it records them once. Of no slots, but with ReasonUnknown, it keeps nothing but that
	// no later term searches for slots up to there. ErrAhead: m.Slot lies ahead of the ledger's clock; nothing
	// is recorded, the slots are still to come. ErrSlotTaken: the one slot that could not be
	// claimed (ReasonLedger) has been claimed after all, and the history has its run.
	Miss(ctx context.Context, t Term, m Missed) error
}
