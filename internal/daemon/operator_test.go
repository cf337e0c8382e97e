package daemon

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/operate/direct"
)

// operator gives orders like the commands: through the servers, or through a node's API.
type operator[O operate.Operator] struct{ to O }

// overServers returns an operator that uses the servers of a configuration until the test ends.
func overServers(t *testing.T, c config.Config) operator[*direct.Site] {
	t.Helper()
	s, err := direct.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return operator[*direct.Site]{s}
}

// signed returns the order with the author and the reason of a text such as "by alice: upgrade".
func signed(by string, o operate.Order) operate.Order {
	o.By, o.Reason, _ = strings.Cut(strings.TrimPrefix(by, "by "), ": ")
	return o
}

func (a operator[O]) run(ctx context.Context, job, by string, force bool) (operate.JobRun, error) {
	out, err := a.to.Do(ctx, signed(by, operate.Order{Kind: operate.KindRun, Job: job, Force: force}))
	if err != nil {
		return operate.JobRun{}, err
	}
	return operate.JobRun{Job: job, Run: *out.Run, Queued: out.Queued}, nil
}

func (a operator[O]) cancel(ctx context.Context, job, runID, by string) (operate.Outcome, error) {
	return a.to.Do(ctx, signed(by, operate.Order{Kind: operate.KindCancel, Job: job, RunID: runID}))
}

func (a operator[O]) pauseJob(ctx context.Context, job, by string, until time.Time) (operate.Outcome, error) {
	return a.to.Do(ctx, signed(by, operate.Order{Kind: operate.KindPauseJob, Job: job, Until: until}))
}

func (a operator[O]) resumeJob(ctx context.Context, job, by string) (operate.Outcome, error) {
	return a.to.Do(ctx, signed(by, operate.Order{Kind: operate.KindResumeJob, Job: job}))
}

func (a operator[O]) pause(ctx context.Context, by string, wait time.Duration) (operate.Outcome, error) {
	return a.to.Do(ctx, signed(by, operate.Order{Kind: operate.KindPause, Wait: wait}))
}

func (a operator[O]) resume(ctx context.Context, by string, wait time.Duration) (operate.Outcome, error) {
	return a.to.Do(ctx, signed(by, operate.Order{Kind: operate.KindResume, Wait: wait}))
}

func (a operator[O]) stepDown(ctx context.Context, to, by string, wait time.Duration) (operate.Outcome, error) {
	return a.to.Do(ctx, signed(by, operate.Order{Kind: operate.KindStepDown, To: to, Wait: wait}))
}

// accept accepts the rows that wait.
func (a operator[O]) accept(ctx context.Context, job, by string) (operate.Outcome, error) {
	waits, err := a.to.Acceptance(ctx, job)
	if err != nil {
		return operate.Outcome{}, err
	}
	o := operate.Order{Kind: operate.KindAccept, Job: job, Changes: waits.Changes, Deletes: waits.Deletes}
	return a.to.Do(ctx, signed(by, o))
}

func (a operator[O]) runs(ctx context.Context, job string, n int) ([]diagnose.Run, error) {
	return operate.Runs(ctx, a.to, job, n)
}

func (a operator[O]) job(ctx context.Context, name string) (diagnose.Job, error) {
	s, err := a.to.Snapshot(ctx)
	if at := slices.IndexFunc(s.Jobs, func(j diagnose.Job) bool { return j.Name == name }); err == nil && at >= 0 {
		return s.Jobs[at], nil
	}
	return diagnose.Job{}, err
}
