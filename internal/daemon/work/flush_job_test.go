package work

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/alert"
	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/elector"
	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/job"
	"baton/internal/status/metrics"
)

// A job that meets a newer leader's fence ends the term, whatever Redis says.
func TestAFlushThatIsFencedOffEndsTheTerm(t *testing.T) {
	f := &flushJob{Task: Task{Task: tasks.Task{Config: config.Job{Name: "views"}}}, metrics: metrics.New("", []string{"views"})}
	fenced := &flush.FencedError{Job: "views", Epoch: 8, Owner: "another"}
	if err := f.judge(fenced); !errors.Is(err, job.ErrNotLeader) || !errors.Is(err, flush.ErrFenced) {
		t.Errorf("fenced off: %v; want job.ErrNotLeader, which ends the term", err)
	}
	above := fmt.Errorf("%w, and this node could not raise its own epoch above that epoch: %w", fenced, elector.ErrEpoch)
	if err := f.judge(above); errors.Is(err, job.ErrNotLeader) {
		t.Errorf("a fence that nobody can get above ends the term: %v", err)
	}
	if err := f.judge(flush.ErrTransient); errors.Is(err, job.ErrNotLeader) {
		t.Errorf("a database that is away ends the term: %v", err)
	}
	wantFigures(t, f.metrics, `baton_flush_fenced_total{job="views"} 1`)
}

// wantFigures checks the exposed metrics.
func wantFigures(t *testing.T, m *metrics.Metrics, want ...string) {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler(zap.NewNop()).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, series := range want {
		if !strings.Contains("\n"+rec.Body.String(), "\n"+series+"\n") {
			t.Errorf("no %s in\n%s", series, rec.Body.String())
		}
	}
}

// The records of a batch are counted by their outcome.
func TestABatchIsCountedByItsOutcome(t *testing.T) {
	f := &flushJob{metrics: metrics.New("", []string{"rows"})}
	f.metrics.AddFlushes("rows")
	records := []row.Record{
		{Key: "1", Inputs: []row.Raw{{Text: "1", OK: true}}}, {Key: "2", Inputs: []row.Raw{{Text: "2", OK: true}}},
		{Key: "x", Inputs: []row.Raw{{Text: "x", OK: true}}},
	}
	source := flushtest.NewScript("rows", flush.Page{Part: -1, Records: records})
	config := flush.Config{
		Job: "rows", Mapping: mapping.Spec{Table: "rows", Key: []string{"id"}}, Inputs: row.Inputs{Names: []string{"id"}},
		NewID:      func() (string, error) { return "id", nil },
		NewSources: func([]string) ([]flush.Source, error) { return []flush.Source{source}, nil },
	}
	sink := flushtest.NewDatabase(row.Table{
		Name: "rows", Columns: []row.Column{{Name: "id", Kind: row.KindInteger, Bits: 64}}, Unique: [][]string{{"id"}},
	})
	p, err := newPipeline(config, "a", sink, &runTotals{}, Reports{Metrics: f.metrics, Log: zap.NewNop()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(t.Context(), leads{}); err != nil {
		t.Fatal(err)
	}
	wantFigures(t, f.metrics, `baton_flush_rows_total{job="rows",outcome="written"} 2`, `baton_flush_rows_total{job="rows",outcome="dead"} 1`,
		`baton_flush_batch_seconds_count{job="rows"} 1`)
}

// A run without pending changes counts as a flush, because all older changes have been flushed.
func TestAnIdleRunCountsAsAFlush(t *testing.T) {
	f := &flushJob{
		Task: Task{Task: tasks.Task{Config: config.Job{Name: "views"}}, done: &runTotals{}}, metrics: metrics.New("", []string{"views"}), watch: NewWatch(),
	}
	f.notes = alert.New(config.Config{}, nil, zap.NewNop(), f.metrics)
	at := time.Now()
	if f.hasFlushed(at) {
		t.Error("a job that never ran has flushed")
	}
	f.idled(at)
	if !f.hasFlushed(at) || f.fresh.Load() != at.UnixNano() || f.hasFlushed(at.Add(1)) {
		t.Errorf("flushed up to %d, fresh at %d, want %d", f.flushed.Load(), f.fresh.Load(), at.UnixNano())
	}
}

// If only an operator can decide, the job is paused.
func TestAPassThatWouldComeAgainForEverPausesTheJob(t *testing.T) {
	f := &flushJob{Task: Task{Task: tasks.Task{Config: config.Job{Name: "carts"}}}}
	err := f.judge(fmt.Errorf("sweep: %w", &flush.TooManyVanishedError{Table: "carts", Stale: 5, All: 9, Again: true}))
	if _, pauses := errors.AsType[*job.PauseError](err); !pauses || !errors.Is(err, flush.ErrTooManyVanished) {
		t.Errorf("the job goes on: %v", err)
	}
}
