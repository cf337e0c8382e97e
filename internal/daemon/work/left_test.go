package work

import (
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/job"
	"baton/internal/status/metrics"
)

// following returns a flush that works between its runs.
func following(t *testing.T, name, key string, released *atomic.Int32) boundTask {
	t.Helper()
	of := Task{Task: tasks.Task{Config: config.Job{Name: name, Flush: config.Flush{From: config.From{Type: "capture", Key: key}}}}, done: &runTotals{}}
	var err error
	of.pipeline, err = flush.New(flush.Config{
		Job: name, NodeID: "a", Sink: flushtest.NewDatabase(row.Table{Name: "rows"}), Mapping: mapping.Spec{Table: "rows"},
		NewID:      func() (string, error) { return "id", nil },
		NewSources: func([]string) ([]flush.Source, error) { return nil, nil },
		Release:    func() error { released.Add(1); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return boundTask{task: of, job: job.Job{Name: name}, flush: &flushJob{Task: of}}
}

// A reload that removes a flush, or gives it another key, ends the flush's work between its runs, but not during a run.
func TestAFlushThatAReloadTakesOutIsReleased(t *testing.T) {
	var gone, moved, changed [2]atomic.Int32
	before := map[string]boundTask{
		"gone": following(t, "gone", "a:<id>", &gone[0]), "moved": following(t, "moved", "b:<id>", &moved[0]),
		"changed": following(t, "changed", "c:<id>", &changed[0]),
	}
	term := &Term{Lock: Lock{Log: zap.NewNop()}, bound: before, captures: &captureReporter{metrics: metrics.New("", nil)}}
	after := map[string]boundTask{
		"moved": following(t, "moved", "d:<id>", &moved[1]), "changed": following(t, "changed", "c:<id>", &changed[1]),
	}
	term.mu.Lock()
	term.leave(after)
	term.bound = after
	term.mu.Unlock()
	before["gone"].flush.running.Add(1)
	now := time.Now().Add(lull)
	if !term.releaseIdle(now) || gone[0].Load() != 0 || moved[0].Load() != 1 || changed[0].Load() != 0 {
		t.Errorf("released below a run: gone %d, moved %d, changed %d times; want 0, 1, 0", gone[0].Load(), moved[0].Load(), changed[0].Load())
	}
	before["gone"].flush.running.Add(-1)
	if term.releaseIdle(now.Add(lull)) || gone[0].Load() != 1 {
		t.Errorf("after its run it is released %d times; want once", gone[0].Load())
	}
	term.End()
	if moved[1].Load() != 1 || changed[1].Load() != 1 || gone[0].Load() != 1 {
		t.Errorf("at the end of the term: moved %d, changed %d, gone %d times; want 1 each", moved[1].Load(), changed[1].Load(), gone[0].Load())
	}
}
