package work

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/flush"
	"baton/internal/job"
	"baton/internal/testsupport/collector"
	"baton/internal/trace"
)

// tracing returns a tracer, and a function that sends its spans to a collector and returns them.
func tracing(t *testing.T) (to *trace.Tracer, spans func() []collector.Span) {
	t.Helper()
	c := collector.Start(t)
	settings, problems := trace.FromEnvironment(func(name string) (string, bool) { return c.URL, name == "OTEL_EXPORTER_OTLP_ENDPOINT" })
	if settings == nil {
		t.Fatal(problems)
	}
	to = trace.NewTracer(settings, trace.Options{Log: zap.NewNop(), Count: func(trace.Outcome, int) {}})
	return to, func() []collector.Span {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		to.Run(ctx) // sends the collected spans, and returns
		return c.Spans()
	}
}

func TestEachRunIsASpanUnlessItFoundNothing(t *testing.T) {
	code := 0
	run := func(change func(*job.Record)) job.Record {
		r := job.Record{Run: job.Run{ID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8", Job: "j", Trigger: job.TriggerSchedule, Attempt: 1}, State: job.StateSucceeded,
			Started: time.Unix(1_800_000_000, 0), Finished: time.Unix(1_800_000_001, 0)}
		change(&r)
		return r
	}
	for _, c := range []struct {
		name   string
		record job.Record
		spans  int
		failed string
	}{
		{"nothing to do", run(func(*job.Record) {}), 0, ""},
		{"nothing to do by order", run(func(r *job.Record) { r.Trigger = job.TriggerManual }), 1, ""},
		{"rows", run(func(r *job.Record) { r.Result.Rows = 1 }), 1, ""},
		{"dead letters", run(func(r *job.Record) { r.Result.Dead = 1 }), 1, ""},
		{"a command", run(func(r *job.Record) { r.Result.ExitCode = &code }), 1, ""},
		{"failed", run(func(r *job.Record) { r.State, r.Error = job.StateFailed, "why" }), 1, "why"},
		{"timed out", run(func(r *job.Record) { r.State, r.Error = job.StateTimedOut, "late" }), 1, "late"},
		{"lost", run(func(r *job.Record) { r.State, r.Finished = job.StateLost, time.Time{} }), 1, "lost"},
		{"cancelled", run(func(r *job.Record) { r.State, r.Error = job.StateCancelled, "stepped down" }), 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			to, sent := tracing(t)
			traceRun(to, c.record)
			spans := sent()
			if len(spans) != c.spans {
				t.Fatalf("%d spans", len(spans))
			}
			if c.spans == 1 && (spans[0].Failed() != (c.failed != "") || spans[0].Status.GetMessage() != c.failed || spans[0].EndTimeUnixNano < spans[0].StartTimeUnixNano) {
				t.Errorf("%v", spans[0])
			}
		})
	}
}

func TestABatchIsAChildOfWhatGoesOn(t *testing.T) {
	to, sent := tracing(t)
	c := config.Config{Databases: map[string]config.Database{"main": {Driver: "postgres"}}}
	of := traceTarget(to, c, config.Job{Name: "views", Flush: config.Flush{To: config.To{Database: "main", Table: "t"}}})
	run := trace.Of("6ba7b810-9dad-41d1-80b4-00c04fd430c8")
	of.batch(&run, flush.BatchStats{Source: "views:1", Rows: 5, Dead: 1, Bytes: 100, Took: time.Second})
	of.batch(&run, flush.BatchStats{Source: "views:2", Rows: 6, Took: time.Second})
	of.batch(&run, flush.BatchStats{Source: "views:1", Applied: true}) // this batch has only moved a position
	of.batch(nil, flush.BatchStats{Source: "views:1", Rows: 5})
	spans := sent()
	if len(spans) != 2 || spans[0].ID() == spans[1].ID() {
		t.Fatalf("%v", spans)
	}
	for i, want := range []map[string]string{{"baton.source": "views:1", "baton.rows": "5", "baton.dead_letters": "1", "baton.bytes": "100"}, {"baton.source": "views:2", "baton.rows": "6"}} {
		s := spans[i]
		want["db.system.name"], want["db.collection.name"], want["baton.database"], want["baton.job"] = "postgresql", "t", "main", "views"
		for key, value := range want {
			if s.Attributes[key] != value {
				t.Errorf("%s is %q, want %q", key, s.Attributes[key], value)
			}
		}
		if s.TraceID() != run.TraceID() || s.ParentID() != "6ba7b8109dad41d1" || s.EndTimeUnixNano-s.StartTimeUnixNano != 1e9 {
			t.Errorf("%v", s)
		}
	}
}

// Without traces a batch costs no more than before there were traces.
func TestWithoutTracesABatchAllocatesNothing(t *testing.T) {
	var during atomic.Pointer[trace.Context]
	job := config.Job{Name: "views", Flush: config.Flush{To: config.To{Database: "main", Table: "t"}}}
	of := traceTarget(nil, config.Config{}, job)
	b := flush.BatchStats{Source: "views", Rows: 5, Bytes: 100, Took: time.Millisecond}
	if n := testing.AllocsPerRun(1000, func() { of.batch(during.Load(), b) }); n != 0 || of != nil {
		t.Errorf("%v allocations", n)
	}
}
