package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/job/plan"
	"baton/internal/job/schedule"
)

// ErrTimeout is the cause of a run's context if the context ended because the run took longer than the job's Timeout.
var ErrTimeout = errors.New("job: timed out")

// Job is work with a schedule.
type Job struct {
	Name     string
	Schedule schedule.Schedule
	Run      Func
	// Version identifies the work. It only matters for "@always": an update that changes Version restarts the job.
	Version string
	// Timeout ends a run that takes longer; 0 means no timeout. It does not apply to "@always".
	Timeout time.Duration
	// CatchUp is the policy for slots that passed without a start. The default is plan.CatchUpNone.
	CatchUp plan.CatchUp
	// StartingDeadline is the maximum time between a slot and the start of its run. With 0 a caught-up run may start at any time, and other
	// runs may start as long as their slot is the latest.
	StartingDeadline time.Duration
	// Overlap is the policy for a run that is due while another run is in progress. The default is plan.OverlapForbid.
	Overlap plan.Overlap
	// MaxOverlap is the maximum number of simultaneous runs with plan.OverlapAllow. 0 means unlimited.
	MaxOverlap int
	// Retry applies to runs that fail or time out, but not to runs whose failure pauses the job.
	Retry plan.Retry
	// OnLost applies to runs that were lost with their leader. The default is plan.OnLostSkip.
	OnLost plan.OnLost
	// EndsFirst is set for a job whose runs may take long to end. [Runner.EndFirst] ends these runs while the other jobs go on.
	EndsFirst bool
	// Spawns is set for a job whose runs start processes, and report when those processes have begun ([Begun]). Only a few processes begin
	// at a time.
	Spawns bool
	// MayIdle is set for a job whose runs often find nothing to do, if [Workload.Idle] can find that out before a run. One call asks about
	// all jobs with the same IdleGroup, so that a server that hangs delays no other group.
	MayIdle   bool
	IdleGroup string
	// Jitter is the upper bound of the job's fixed delay after its slots; 0 means no delay.
	Jitter time.Duration
}

// Workload is the work of a term.
type Workload struct {
	Jobs []Job
	// MaxConcurrent is the maximum number of simultaneous runs. Runs of "@always" jobs do not count. 0 means unlimited.
	MaxConcurrent int
	// Idle reports for each job, in the order of jobs, whether a run that began now would find nothing to do and succeed. Such a run is
	// recorded without being started. If Idle cannot know this for a job, it reports false. Several goroutines may call it. A nil Idle
	// reports false for all.
	Idle func(ctx context.Context, jobs []string) []bool
}

// Reason says why a slot was not run.
type Reason string

// These are the values of Reason.
const (
	// ReasonOverlap means that an earlier run of the job was still in progress.
	ReasonOverlap Reason = "overlap"
	// ReasonNoLeader means that the slot passed while the lock was free, or after the last renewal of a lease that ran out, so that no node
	// led.
	ReasonNoLeader Reason = "no_leader"
	// ReasonLate means that this node led, but noticed the slot too late. Its clock was put forward, the machine was suspended, overloaded
	// or busy with other starts, or the lock was being handed over.
	ReasonLate Reason = "late"
	// ReasonLedger means that the slot could not be claimed, or the outcome of the claim is unknown.
	ReasonLedger Reason = "ledger"
	// ReasonPaused means that the job was paused, by an operator or by a failed run.
	ReasonPaused Reason = "paused"
	// ReasonConcurrency means that MaxConcurrent runs were in progress until a later slot was due or the starting deadline had passed.
	ReasonConcurrency Reason = "concurrency"
	// ReasonUnknown means that the slots passed while another leader may have held the lock, and that leader did not record why it did not
	// run them. In a report without slots it means that the ledger has no state of the job: the job is new, or the ledger has lost its
	// data. No slots are caught up then.
	ReasonUnknown Reason = "unknown"
)

// reasonNone marks a report that contains no missed slots. Such a report only records that the job has no slots up to a time.
const reasonNone Reason = "none"

// Reasons lists every reason, so that a metric with reasons can show zero for each of them.
func Reasons() []Reason {
	return []Reason{ReasonOverlap, ReasonNoLeader, ReasonLate, ReasonLedger, ReasonPaused, ReasonConcurrency, ReasonUnknown}
}

// Missed describes consecutive slots of a job that were not run and will not be run.
type Missed struct {
	Job    string
	Reason Reason
	Count  int       // at most plan.MaxCounted in one report; 0 if the ledger has no state of the job
	First  time.Time // the earliest of the slots
	Slot   time.Time // the latest of the slots; with Count 0 the start of the known slots
	// After is the slot before First. Two reports may be joined if one begins where the other ends. Zero means unknown.
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
