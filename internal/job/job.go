package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/job/plan"
	"baton/internal/job/schedule"
)

// ErrTimeout is the cause of a run's context after the job's Timeout.
var ErrTimeout = errors.New("job: timed out")

// Job is work with a schedule.
type Job struct {
	Name     string
	Schedule schedule.Schedule
	Run      Func
	// Version identifies the work. It matters for "@always" only: an update that changes it
	// restarts the job.
	Version string
	// Timeout ends a run that takes longer; 0: none. It does not apply to "@always".
	Timeout time.Duration
	// CatchUp is plan.CatchUpNone if empty.
	CatchUp plan.CatchUp
	// StartingDeadline is how long after its slot a run may still start; 0: a caught-up run
	// at any time, others as long as their slot is the latest.
	StartingDeadline time.Duration
	// Overlap is plan.OverlapForbid if empty.
	Overlap plan.Overlap
	// MaxOverlap is the maximum number of simultaneous runs with plan.OverlapAllow; 0:
	// unlimited.
	MaxOverlap int
	// Retry applies to runs that fail or time out, not to those that pause the job.
	Retry plan.Retry
	// OnLost applies to runs that were lost with their leader; plan.OnLostSkip if empty.
	OnLost plan.OnLost
	// EndsFirst: its runs may take long to end. [Runner.EndFirst] ends them while the other
	// jobs go on.
	EndsFirst bool
	// Spawns: its runs start processes, and report when those have begun ([Begun]). Few begin
	// at a time.
	Spawns bool
	// MayIdle: a run often finds nothing to do, and [Workload.Idle] can find out beforehand. Jobs
	// with one IdleGroup are asked about together: a server that hangs holds up no other group.
	MayIdle   bool
	IdleGroup string
	// Jitter is the upper bound of the job's fixed delay after its slots; 0: none.
	Jitter time.Duration
}

// Workload is the work of a term.
type Workload struct {
	Jobs []Job
	// MaxConcurrent is the maximum number of simultaneous runs, without those of "@always";
	// 0: unlimited.
	MaxConcurrent int
	// Idle reports of each job, in their order, whether a run that began now would find nothing to
	// do and succeed. Such a run is recorded and not begun. false: it would, or that is unknown. It
	// may be called by several goroutines. nil: unknown for all.
	Idle func(ctx context.Context, jobs []string) []bool
}

// Reason is why a slot was not run.
type Reason string

// The reasons.
const (
	// ReasonOverlap: an earlier run of the job was still going on.
	ReasonOverlap Reason = "overlap"
	// ReasonNoLeader: the slot passed while the lock was free, or after the last renewal of a lease that ran out, so that no node led.
	ReasonNoLeader Reason = "no_leader"
	// ReasonLate: this node led, but noticed the slot too late: its clock was put forward, or
	// the machine was suspended, overloaded or busy with other starts.
	ReasonLate Reason = "late"
	// ReasonLedger: the slot could not be claimed, or the outcome of the claim is unknown.
	ReasonLedger Reason = "ledger"
	// ReasonPaused: the job was paused, by an operator or by a failed run.
	ReasonPaused Reason = "paused"
	// ReasonConcurrency: MaxConcurrent runs went on until a later slot was due or the
	// starting deadline had passed.
	ReasonConcurrency Reason = "concurrency"
	// ReasonUnknown: the slots passed while another leader may have held the lock, which did
	// not record why it did not run them. Without any slot: the ledger has no state of the
	// job. It is new, or the ledger has lost its data; nothing is caught up.
	ReasonUnknown Reason = "unknown"
)

// reasonNone marks a report without slots: up to there the job has none.
const reasonNone Reason = "none"

// Reasons lists every reason, for metrics that start at zero.
func Reasons() []Reason {
	return []Reason{ReasonOverlap, ReasonNoLeader, ReasonLate, ReasonLedger, ReasonPaused, ReasonConcurrency, ReasonUnknown}
}

// Missed are consecutive slots of a job that were not run and will not be.
type Missed struct {
	Job    string
	Reason Reason
	Count  int       // at most plan.MaxCounted for one report; 0 if the ledger has no state of the job
	First  time.Time // the earliest of them
	Slot   time.Time // the latest of them; with Count 0 the start of the known slots
	// After is the slot before First: two reports may be joined if one begins where the
	// other ends. Zero: unknown.
	After time.Time
	Err   error // with ReasonLedger and ReasonPaused, the ledger's answer
}

// validate refuses duplicate names and incomplete jobs.
func validate(jobs []Job) error {
	seen := make(map[string]bool, len(jobs))
	for _, j := range jobs {
		switch {
		case j.Name == "" || j.Schedule == nil || j.Run == nil:
			return fmt.Errorf("job %q: a name, a schedule and work to do are required", j.Name)
		case seen[j.Name]:
			return fmt.Errorf("duplicate job %q", j.Name)
		}
		seen[j.Name] = true
	}
	return nil
}
