package job

import (
	"errors"
	"fmt"
	"time"

	"baton/internal/job/plan"
	"baton/internal/job/schedule"
)

// ErrTimeout is the cause by which the context of a run ends that takes longer than
// its job allows.
var ErrTimeout = errors.New("job: timed out")

// Job is some work and when it is due.
type Job struct {
	Name     string
	Schedule schedule.Schedule
	Run      Func
	// Version differs when the work differs. It matters for "@always" alone: an update
	// that changes it starts the job anew.
	Version string
	// Timeout ends a run that takes longer; 0: none. It does not concern a job that runs
	// all the time.
	Timeout time.Duration
	// CatchUp is plan.CatchUpNone if empty.
	CatchUp plan.CatchUp
	// StartingDeadline is how long after its slot a run may still start; 0: a caught-up
	// one at any time, others for as long as their slot is the latest.
	StartingDeadline time.Duration
	// Overlap is plan.OverlapForbid if empty.
	Overlap plan.Overlap
	// MaxOverlap is how many runs go on at a time with plan.OverlapAllow; 0: any number.
	MaxOverlap int
	// Retry concerns runs that fail or time out, not those that pause the job.
	Retry plan.Retry
	// OnLost concerns runs that were lost with their leader; plan.OnLostSkip if empty.
	OnLost plan.OnLost
	// EndsFirst: its runs may take their time to end. [Runner.EndFirst] ends them while
	// the other jobs go on.
	EndsFirst bool
	// Spawns: its runs start processes, and report when those have begun ([Begun]). Few begin
	// at a time.
	Spawns bool
	// Jitter is below what the job starts after its slots, always by the same; 0: none.
	Jitter time.Duration
}

// Workload is what a term has to do.
type Workload struct {
	Jobs []Job
	// MaxConcurrent is how many runs may go on at a time, those of "@always" not
	// counted; 0: any number.
	MaxConcurrent int
}

// Reason says why a slot was not run.
type Reason string

// The reasons.
const (
	// ReasonOverlap: an earlier run of the job was still going on.
	ReasonOverlap Reason = "overlap"
	// ReasonNoLeader: the slot passed while the lock was free, so that no node led.
	ReasonNoLeader Reason = "no_leader"
	// ReasonLate: this node led, but came to the slot too late: its clock was put
	// forward, or the machine was suspended, starved or busy with other starts.
	ReasonLate Reason = "late"
	// ReasonLedger: the slot could not be claimed, or it is not known whether it was.
	ReasonLedger Reason = "ledger"
	// ReasonPaused: the job was paused, by an operator or by a run that went wrong.
	ReasonPaused Reason = "paused"
	// ReasonConcurrency: as many runs as may were going on until a later slot was due, or
	// the starting deadline had passed.
	ReasonConcurrency Reason = "concurrency"
	// ReasonUnknown: the slots passed while another leader may have held the lock, which has
	// not recorded why it did not run them. Without any slot: the ledger knows nothing of the
	// job. It is new, or the ledger has lost its data: what was run before is not known,
	// and nothing is caught up.
	ReasonUnknown Reason = "unknown"
)

// reasonNone is of a report of no slots: up to there the job has none.
const reasonNone Reason = "none"

// Reasons lists every reason, for metrics that start at zero.
func Reasons() []Reason {
	return []Reason{ReasonOverlap, ReasonNoLeader, ReasonLate, ReasonLedger, ReasonPaused, ReasonConcurrency, ReasonUnknown}
}

// Missed are slots of a job, one after the other, that were not run, and will not be.
type Missed struct {
	Job    string
	Reason Reason
	Count  int       // at most plan.MaxCounted for one report; 0 where nothing is known of the job
	First  time.Time // the earliest of them
	Slot   time.Time // the latest of them; with Count 0 from when on slots are known
	// After is the slot before the earliest one: reports of which one begins where the
	// other ends may be joined. Zero: not known.
	After time.Time
	Err   error // with ReasonLedger and ReasonPaused, what the ledger answered
}

// validate refuses jobs that have one name, or cannot be run.
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
