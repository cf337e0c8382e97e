package work

import (
	"errors"
	"fmt"
	"testing"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/elector"
	"baton/internal/flush"
	"baton/internal/job"
	"baton/internal/status/metrics"
)

// Whoever meets a newer leader's fence leads no more, whatever its Redis says.
func TestAFlushThatIsFencedOffEndsTheTerm(t *testing.T) {
	f := &flushJob{Task: Task{Task: tasks.Task{Config: config.Job{Name: "views"}}}, metrics: metrics.New("", []string{"views"})}
	fenced := &flush.FencedError{Job: "views", Epoch: 8, Owner: "another"}
	if err := f.judge(fenced); !errors.Is(err, job.ErrNotLeader) || !errors.Is(err, flush.ErrFenced) {
		t.Errorf("fenced off: %v; want job.ErrNotLeader, which ends the term", err)
	}
	above := fmt.Errorf("%w, and our epoch could not be raised above it: %w", fenced, elector.ErrEpoch)
	if err := f.judge(above); errors.Is(err, job.ErrNotLeader) {
		t.Errorf("a fence that nobody can get above ends the term: %v", err)
	}
	if err := f.judge(flush.ErrTransient); errors.Is(err, job.ErrNotLeader) {
		t.Errorf("a database that is away ends the term: %v", err)
	}
}

// What only an operator can decide pauses the job.
func TestAPassThatWouldComeAgainForEverPausesTheJob(t *testing.T) {
	f := &flushJob{Task: Task{Task: tasks.Task{Config: config.Job{Name: "carts"}}}}
	err := f.judge(fmt.Errorf("sweep: %w", &flush.TooManyVanishedError{Table: "carts", Stale: 5, All: 9, Again: true}))
	if _, pauses := errors.AsType[*job.PauseError](err); !pauses || !errors.Is(err, flush.ErrTooManyVanished) {
		t.Errorf("the job goes on: %v", err)
	}
}
