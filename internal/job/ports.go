package job

import (
	"context"
	"errors"
	"time"
)

// These are the errors of a Ledger, matched by errors.Is.
var (
	// ErrSlotTaken means that this slot, or a later slot, has already been claimed, here or on another node.
	ErrSlotTaken = errors.New("job: slot is taken")
	// ErrPaused means that the job is paused; a [PausedError] has the reason. The caller of Claim records the slot as missed.
	ErrPaused = errors.New("job: paused")
	// ErrAhead means that the slot is too far ahead of the ledger's clock, so the host's clock or the ledger's clock is wrong. The slot was
	// not claimed.
	ErrAhead = errors.New("job: the slot lies ahead of the ledger's clock")
	// ErrDone means that ClaimIdle granted this run before, but the reply was lost. The run has ended.
	ErrDone = errors.New("job: the run has ended already")
	// ErrNotLeader means that the caller does not own the lock. The caller must start nothing more.
	ErrNotLeader = errors.New("job: this node no longer leads")
)

// Trigger says why a run was started.
type Trigger string

// These are the values of Trigger.
const (
	TriggerSchedule Trigger = "schedule"
	TriggerCatchUp  Trigger = "catch_up"
	TriggerRetry    Trigger = "retry"
	TriggerManual   Trigger = "manual"
)

// State is the state of a run.
type State string

// These are the states of a run.
const (
	StateRunning   State = "running"
	StateSucceeded State = "succeeded"
	StateFailed    State = "failed"
	StateTimedOut  State = "timed_out"
	StateCancelled State = "cancelled" // by the end of the term, an operator or a later slot
	StateLost      State = "lost"      // the leader is gone and recorded no result
)

// Term is the leadership that a run belongs to: its owner and fencing token. The run's context ends with the term.
type Term struct {
	NodeID string
	Owner  string
	Epoch  int64
	// FreeSince is the time at which the last leader released the lock. If that leader's lease ran out instead, FreeSince is the time of
	// its last renewal. The time is by the clock that slots follow. Zero means unknown. FreeSince is not set for runs.
	FreeSince time.Time
}

// Run is one execution of a job.
type Run struct {
	ID      string
	Job     string
	Slot    time.Time
	Trigger Trigger
	Attempt int // 1 for the first attempt
	Term    Term
	By      string // requester and reason of a manual run
	Forced  bool   // a manual run that runs even if Overlap would have refused it
}

// Result is the outcome that a run's work returns.
type Result struct {
	Rows     int64  // rows written
	Deleted  int64  // the number of deleted rows among Rows
	Dead     int64  // records written as dead letters
	ExitCode *int   // of a command that was not killed
	Output   string // the end of a command's output
}

// Func is the work of a job. It must return soon after ctx ends. The cause of ctx decides what its error means: after the timeout, for
// example, the run has timed out. ErrNotLeader ends the term, because the work has found a newer leader. A *PauseError pauses the job.
type Func func(ctx context.Context, r Run) (Result, error)

// PauseError is the error of work that must not run again before an operator resumes the job.
type PauseError struct{ Err error }

func (e *PauseError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *PauseError) Unwrap() error { return e.Err }

// PausedError is [ErrPaused] with the reason of the pause, such as "by alice: upgrade".
type PausedError struct{ Reason string }

func (e *PausedError) Error() string { return ErrPaused.Error() + " " + e.Reason }

// Is reports whether the other error is ErrPaused.
func (e *PausedError) Is(other error) bool { return other == ErrPaused }

// Record is a finished run, for the history.
type Record struct {
	Run
	State    State
	Started  time.Time
	Finished time.Time
	Result   Result
	Error    string
	Pauses   bool // the record pauses the job, because of its Error
	// RetryAt is the time of the slot's next attempt; zero means no attempt.
	RetryAt time.Time
	// NoFailure marks a loss that does not count as a failure, because the job starts again with the next term.
	NoFailure bool
	// Idle is set if the record stands for several runs that found nothing to do. Such a record describes the last of these runs, but has
	// the ID of the first. Only the history has such records. For a single run Idle is nil.
	Idle *Idle
}

// Idle describes consecutive runs that found nothing to do.
type Idle struct {
	Runs  int
	First time.Time // the slot of the first run
}

// Retrial is a pending further attempt of a slot.
type Retrial struct {
	Slot    time.Time
	Attempt int
	At      time.Time // when the retrial is due
}

// ResumeState is the state of a job that a new term reads at its start, to continue where the last term ended.
type ResumeState struct {
	// Last is the last slot that was claimed, or recorded as missed.
	Last time.Time
	// Open are runs without a recorded end. The runs of an earlier term are lost.
	Open []Record
	// Retry is the pending retrial, or nil.
	Retry *Retrial
}

// Ledger records, for all nodes, started slots and the results of runs.
type Ledger interface {
	// ResumeStates returns the state of each named job. A job without a state is absent from the map: the job is new, or the ledger has
	// lost its data.
	ResumeStates(ctx context.Context, jobs []string) (map[string]ResumeState, error)
	// Claim starts a run. Across all nodes only one caller succeeds for an attempt of a slot. Claim succeeds only while the owner of the
	// run's term holds the lock, and while the job is not paused. A first attempt needs a slot later than all claimed or missed slots; it
	// drops a pending retrial. A further attempt (TriggerRetry) needs exactly that pending retrial, and removes it. A manual run has no
	// slot: it is granted once if its ID was requested. The errors are ErrSlotTaken, ErrNotLeader, ErrPaused, ErrAhead, ErrDone if
	// ClaimIdle has granted the run, or an error that leaves the outcome unknown. After an unknown outcome, call Claim again with the same
	// Run: the run that holds the slot is granted the slot again, and two runs never have the same slot.
	Claim(ctx context.Context, r Run) error
	// ClaimIdle claims first attempts of slots of different jobs, for runs that have nothing to do. In the same step it records that these
	// runs succeeded. It returns the error of each claim, in the order of recs. The errors are the errors of Claim. For a claim with an
	// unknown outcome call Claim.
	ClaimIdle(ctx context.Context, recs []Record) []error
	// Finish records how a claimed run ended. It pauses the job if Pauses is set and the run is the job's latest, and stores the run's
	// retrial if RetryAt is set and no later slot was claimed. It may be called again. StateLost is recorded only for an open run. A later
	// result of a lost run replaces StateLost, and the retrial of the run stays.
	Finish(ctx context.Context, rec Record) error
	// Miss records slots that are not run, so that no later term catches up on them. It returns ErrNotLeader if the term's owner does not
	// hold the lock. It may be called again. A report without slots, except for ReasonUnknown, only records that no later term searches for
	// slots up to the time of the report. ErrAhead means that m.Slot is ahead of the ledger's clock: nothing is recorded, and the slots are
	// still due. ErrSlotTaken means that the slot that could not be claimed (ReasonLedger) was claimed after all: the history has its run.
	Miss(ctx context.Context, t Term, m Missed) error
}
