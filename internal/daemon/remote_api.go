package daemon

import (
	"context"
	"time"

	"baton/internal/operate"
)

// Commands ask either the servers themselves ([Remote], [Dead]), which takes the
// configuration, or a node by its API ([Client]), which takes its address. Both answer
// alike, with the same errors.
type (
	// Elections is how commands look at an election, and what they ask of it.
	Elections interface {
		Snapshot(ctx context.Context) (Snapshot, error)
		Leader(ctx context.Context) (leader *Leader, vacant string, err error)
		Events(ctx context.Context, n int) ([]Event, error)
		Explain(ctx context.Context, node string) Explanation
		StepDown(ctx context.Context, to, reason string, wait time.Duration) (Handover, error)
		// StepDownFrom is StepDown of another election than the node's own, by its lock's key.
		StepDownFrom(ctx context.Context, lockKey, to, reason string, wait time.Duration) (Handover, error)
		Pause(ctx context.Context, reason string, wait time.Duration) (Paused, error)
		Resume(ctx context.Context, reason string, wait time.Duration) (Resumed, error)
		// LockKey is the node's own election's; "" if nobody can tell.
		LockKey() string
		Close() error
	}
	// Jobs is how they look at jobs, and what they ask of them.
	Jobs interface {
		Job(ctx context.Context, name string) (Job, error)
		JobRuns(ctx context.Context, name string, n int) ([]Execution, error)
		JobHistory(ctx context.Context, name string, n int) ([]JobEntry, error)
		Next(ctx context.Context, name string, from time.Time, n int) (Coming, error)
		RunJob(ctx context.Context, name, by string, force bool) (JobRun, error)
		CancelJob(ctx context.Context, name, runID, by string) (JobCancelled, error)
		PauseJob(ctx context.Context, name, reason string, until time.Time) (JobPause, error)
		ResumeJob(ctx context.Context, name, by string) (JobPause, error)
		Vacant(ctx context.Context, name string) (lockKey, why string)
		Runs
		Zone(name string) *time.Location
	}
	// Runs is how they look at single runs: see [WatchRun] and [ShowLogs].
	Runs interface {
		Run(ctx context.Context, name, id string) (JobRun, error)
		Output(ctx context.Context, name, id string, from int64) (Output, error)
		IsCommand(name string) bool
	}
	// Letters is how they deal with dead letters.
	Letters interface {
		Configured(job string) bool
		List(ctx context.Context, f DeadFilter, n, cut int) ([]DeadLetter, error)
		Find(ctx context.Context, id, database string) (DeadLetter, error)
		Keys(ctx context.Context, f DeadFilter) ([]DeadKey, error)
		Reasons(ctx context.Context, f DeadFilter) ([]DeadReason, error)
		Waiting(ctx context.Context) (map[string]int64, error)
		Replay(ctx context.Context, keys []DeadKey, o ReplayOptions, told func(Replayed)) error
		Drop(ctx context.Context, keys []DeadKey, told func(done int)) (dropped int64, err error)
		Close() error
	}
	// Asked is what commands about elections and jobs ask.
	Asked interface {
		Elections
		Jobs
	}
)

var (
	_ Asked   = (*Remote)(nil)
	_ Letters = (*Dead)(nil)
	_ Asked   = (*Client)(nil)
	_ Letters = (*Client)(nil)
)

// LockKey is the key of the configuration's election.
func (r *Remote) LockKey() string { return r.config.Election.LockKey }

// StepDownFrom asks the leader of another election of the configuration to step down.
func (r *Remote) StepDownFrom(ctx context.Context, lockKey, to, reason string, wait time.Duration) (Handover, error) {
	other, err := r.lockOf(lockKey)
	if err != nil {
		return Handover{}, err
	}
	return other.StepDown(ctx, to, reason, wait)
}

// Next tells when a job is due after a time.
func (r *Remote) Next(_ context.Context, name string, from time.Time, n int) (Coming, error) {
	return Next(r.config, name, from, n)
}

// apiLetter is a dead letter as the API has it.
func apiLetter(l operate.Letter) DeadLetter {
	return DeadLetter{DeadKey: DeadKey{ID: l.ID, Job: l.Job, Database: l.Database}, BatchID: l.BatchID, At: l.At, Error: l.Error, Record: RecordText(l.Record)}
}
