package job

import (
	"errors"
	"fmt"
	"time"
)

// ErrTimeout is the cause by which the context of a run ends that takes longer than
// its job allows.
var ErrTimeout = errors.New("job: timed out")

// CatchUp says what becomes of slots that passed while no node could start them.
type CatchUp string

// The ways to catch up.
const (
	CatchUpNone   CatchUp = "none"   // they are counted as missed
	CatchUpLatest CatchUp = "latest" // the latest one is run, the others are counted as missed
)

// Job is some work and when it is due. A slot that comes due while an earlier run of
// the job goes on is not run.
type Job struct {
	Name     string
	Schedule Schedule
	Run      Func
	// Timeout ends a run that takes longer; 0: none. It does not concern a job that runs
	// all the time.
	Timeout time.Duration
	// CatchUp is CatchUpNone if empty.
	CatchUp CatchUp
	// StartingDeadline is how long after its slot a run may still start; 0: a caught-up
	// one at any time, others for as long as their slot is the latest.
	StartingDeadline time.Duration
}

// Reason says why a slot was not run.
type Reason string

// The reasons.
const (
	// ReasonOverlap: an earlier run of the job was still going on.
	ReasonOverlap Reason = "overlap"
	// ReasonNoLeader: the slot passed while no node led.
	ReasonNoLeader Reason = "no_leader"
	// ReasonLate: this node led, but came to the slot too late: its clock was put
	// forward, or the machine was suspended or starved.
	ReasonLate Reason = "late"
	// ReasonLedger: the slot could not be claimed, or it is not known whether it was.
	ReasonLedger Reason = "ledger"
	// ReasonPaused: the job was paused, by an operator or by a run that went wrong.
	ReasonPaused Reason = "paused"
)

// Reasons lists every reason, for metrics that start at zero.
func Reasons() []Reason {
	return []Reason{ReasonOverlap, ReasonNoLeader, ReasonLate, ReasonLedger, ReasonPaused}
}

// Missed are slots of a job that were not run, and will not be.
type Missed struct {
	Job    string
	Reason Reason
	Count  int       // at most maxCounted for one report
	Slot   time.Time // the latest of them
	Err    error     // with ReasonLedger, what the ledger answered
}

// validate refuses jobs that could not be told apart, or run.
func validate(jobs []Job) error {
	seen := make(map[string]bool, len(jobs))
	for _, j := range jobs {
		switch {
		case j.Name == "" || j.Schedule == nil || j.Run == nil:
			return fmt.Errorf("job %q: a name, a schedule and work to do are required", j.Name)
		case seen[j.Name]:
			return fmt.Errorf("job %q is there twice", j.Name)
		}
		seen[j.Name] = true
	}
	return nil
}
