package job

import (
	"context"
	"errors"
	"time"
)

// The errors of a Ledger, matched by errors.Is.
var (
	// ErrSlotTaken: this slot, or a later one, has been claimed already, here or on another node.
	ErrSlotTaken = errors.New("job: slot is taken")
	// ErrPaused: the job is paused; a [PausedError] has the reason. The caller of Claim records the slot as
	// missed.
	ErrPaused = errors.New("job: paused")
	// ErrAhead: the slot is too far ahead of the ledger's clock, so the host's clock or the
	// ledger's is wrong. Nothing was claimed.
	ErrAhead = errors.New("job: the slot lies ahead of the ledger's clock")
	// ErrDone: ClaimIdle granted this run before, so it has ended; the reply was lost.
	ErrDone = errors.New("job: the run has ended already")
	// ErrNotLeader: the caller is not the lock's owner. Start nothing more.
	ErrNotLeader = errors.New("job: this node no longer leads")
)

// Trigger is why a run was started.
type Trigger string

// The triggers.
const (
	TriggerSchedule Trigger = "schedule"
	TriggerCatchUp  Trigger = "catch_up"
	TriggerRetry    Trigger = "retry"
	TriggerManual   Trigger = "manual"
)

// State is the state of a run.
type State string

// The states of a run.
const (
	StateRunning   State = "running"
	StateSucceeded State = "succeeded"
	StateFailed    State = "failed"
	StateTimedOut  State = "timed_out"
	StateCancelled State = "cancelled" // by the end of the term, an operator or a later slot
	StateLost      State = "lost"      // its leader is gone and recorded no result
)

// Term is the leadership that a run belongs to: owner and fencing token. The run's context ends
// with it.
type Term struct {
	NodeID string
	Owner  string
	Epoch  int64
	// FreeSince is when the last leader released the lock, or last renewed a lease that ran out, by the clock of the slots; zero:
	// unknown. It is not set for runs.
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
	By      string // requester and reason of a manual run
	Forced  bool   // a manual run that overlap would have refused
}

// Result is the outcome that a run's work returns.
type Result struct {
	Rows     int64  // rows written
	Deleted  int64  // of the rows, those that were deleted
	Dead     int64  // records put aside as dead letters
	ExitCode *int   // of a command that was not killed
	Output   string // the end of a command's output
}

// Func is the work of a job. It must return soon after ctx ends. Its error is judged by the
// cause of ctx: after the timeout the run has timed out. ErrNotLeader ends the term: the work
// has found a newer leader. A *PauseError pauses the job.
type Func func(ctx context.Context, r Run) (Result, error)

// PauseError is the error of work that must not run again before an operator resumes the job.
type PauseError struct{ Err error }

func (e *PauseError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *PauseError) Unwrap() error { return e.Err }

// PausedError is [ErrPaused] with its reason: "by alice: upgrade".
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
	Pauses   bool // recording it pauses the job, for this Error
	// RetryAt is the time of the slot's next attempt; zero: none.
	RetryAt time.Time
	// NoFailure: a loss that does not count as a failure, because the job starts anew with the next term.
	NoFailure bool
	// Idle: the record is that of several runs that found nothing to do: the last of them, with the
	// ID of the first. Only the history has such records. nil: one run.
	Idle *Idle
}

// Idle are runs, one after the other, that found nothing to do.
type Idle struct {
	Runs  int
	First time.Time // the slot of the first
}

// Retrial is a pending further attempt of a slot.
type Retrial struct {
	Slot    time.Time
	Attempt int
	At      time.Time // when it is due
}

// Standing is the state of a job when a term begins.
type Standing struct {
	// Last is the last slot that was claimed, or recorded as missed.
	Last time.Time
	// Open are runs without a recorded end. Those of an earlier term are lost.
	Open []Record
	// Retry is the pending retrial; nil: none.
	Retry *Retrial
}

// Ledger records, for all nodes, started slots and the results of runs.
type Ledger interface {
	// Standings returns the standing of each named job. A job without state is absent: it is
	// new, or the ledger has lost its data.
	Standings(ctx context.Context, jobs []string) (map[string]Standing, error)
	// Claim starts a run: across all nodes one caller succeeds for an attempt of a slot, and
	// only while its term's owner holds the lock and the job is not paused. A first attempt
	// needs a slot later than all claimed or missed ones; it drops a pending retrial. A further
	// attempt (TriggerRetry) needs exactly that pending retrial, and removes it. A manual run
	// has no slot: it is granted once if its ID was requested. Errors: ErrSlotTaken,
	// ErrNotLeader, ErrPaused, ErrAhead, or one that leaves the outcome unknown. Then call
	// again with the same Run: the run that holds the slot is granted it again, and two runs
	// never have one slot. ErrDone: ClaimIdle has granted it.
	Claim(ctx context.Context, r Run) error
	// ClaimIdle claims first attempts of slots, each of another job, for runs that have nothing to
	// do, and records in the same step that they succeeded. It returns the error of each claim, as
	// Claim does, in their order. Where the outcome is unknown call Claim.
	ClaimIdle(ctx context.Context, recs []Record) []error
	// Finish records how a claimed run ended. It pauses the job if Pauses is set and the run is
	// the job's latest, and stores its retrial if RetryAt is set and no later slot was claimed.
	// It may be called again. StateLost is recorded only for an open run; a later result of a
	// lost run replaces it, and its retrial stays.
	Finish(ctx context.Context, rec Record) error
	// Miss records slots that are not run, while the term's owner holds the lock (else
	// ErrNotLeader): no later term catches up on them. It may be called again. Without slots,
	// except for ReasonUnknown, it only records that no later term searches for slots up to
	// there. ErrAhead: m.Slot is ahead of the ledger's clock; nothing is recorded, the slots
	// are still due. ErrSlotTaken: the slot that could not be claimed (ReasonLedger) was
	// claimed after all, and the history has its run.
	Miss(ctx context.Context, t Term, m Missed) error
}
