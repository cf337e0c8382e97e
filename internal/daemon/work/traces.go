package work

import (
	"context"
	"slices"
	"time"

	"baton/internal/config"
	"baton/internal/flush"
	"baton/internal/job"
	"baton/internal/job/schedule"
	"baton/internal/trace"
)

// TraceTerm sends the trace of a term that has ended. The digits of the trace's ID are the digits of the term's owner, which is a UUID.
func TraceTerm(to *trace.Tracer, owner string, began time.Time, failure string, facts ...trace.Attribute) {
	if to == nil {
		return
	}
	to.Record(trace.Span{
		Context: trace.Of(owner), Name: "term", Kind: trace.Internal, Start: began, End: time.Now(), Error: failure,
		Attributes: append(facts, trace.Attribute{Key: "baton.owner", Value: owner}),
	})
}

// traceRun sends the trace of a run that has ended. This may also be a run that an earlier leader has lost. The digits of the trace's ID
// are the digits of the run's ID.
func traceRun(to *trace.Tracer, r job.Record) {
	if to == nil || foundNothing(r) {
		return
	}
	s := trace.Span{
		Context: trace.Of(r.ID), Links: []trace.Context{trace.Of(r.Term.Owner)}, Name: "run " + r.Job, Kind: trace.Internal,
		Start: r.Started, End: r.Finished, Attributes: []trace.Attribute{
			{Key: "baton.trigger", Value: string(r.Trigger)}, {Key: "baton.attempt", Value: int64(r.Attempt)},
			{Key: "baton.result", Value: string(r.State)},
		},
	}
	s.Attributes = append(s.Attributes, written(r.Run, r.Result.Rows, r.Result.Dead)...)
	if !r.Slot.IsZero() {
		s.Attributes = append(s.Attributes, trace.Attribute{Key: "baton.slot", Value: r.Slot.UTC().Format(time.RFC3339Nano)})
	}
	if r.Result.ExitCode != nil {
		s.Attributes = append(s.Attributes, trace.Attribute{Key: "process.exit.code", Value: int64(*r.Result.ExitCode)})
	}
	switch r.State {
	case job.StateFailed, job.StateTimedOut, job.StateLost:
		s.Error = r.Error
		if s.Error == "" {
			s.Error = string(r.State)
		}
	case job.StateCancelled: // as ordered
		s.Attributes = append(s.Attributes, trace.Attribute{Key: "baton.reason", Value: r.Error})
	}
	to.Record(s)
}

// foundNothing reports whether a scheduled flush has succeeded without anything to do. Most flushes have nothing to do, and the history
// combines several such runs in one entry.
func foundNothing(r job.Record) bool {
	return r.State == job.StateSucceeded && r.Trigger == job.TriggerSchedule &&
		r.Result.Rows == 0 && r.Result.Dead == 0 && r.Result.ExitCode == nil
}

// written returns the attributes for the span of a run: the IDs of the run, and its results so far.
func written(r job.Run, rows, dead int64) []trace.Attribute {
	return []trace.Attribute{
		{Key: "baton.job", Value: r.Job}, {Key: "baton.run_id", Value: r.ID},
		{Key: "baton.node_id", Value: r.Term.NodeID}, {Key: "baton.epoch", Value: r.Term.Epoch},
		{Key: "baton.rows", Value: rows}, {Key: "baton.dead_letters", Value: dead},
	}
}

// tracedTarget holds the attributes that the spans of all batches of a flush have. It is nil if traces are disabled.
type tracedTarget struct {
	to    *trace.Tracer
	facts []trace.Attribute
}

func traceTarget(to *trace.Tracer, c config.Config, j config.Job) *tracedTarget {
	if to == nil || j.IsCommand() {
		return nil
	}
	system := c.Databases[j.Flush.To.Database].Driver
	if system == "postgres" {
		system = "postgresql" // OpenTelemetry's name of PostgreSQL
	}
	return &tracedTarget{to, []trace.Attribute{
		{Key: "baton.job", Value: j.Name}, {Key: "baton.database", Value: j.Flush.To.Database},
		{Key: "db.system.name", Value: system}, {Key: "db.collection.name", Value: j.Flush.To.Table},
	}}
}

// batch records the span of a transaction that has written rows or dead letters. The span becomes a child of the span in the argument
// during.
func (t *tracedTarget) batch(during *trace.Context, b flush.BatchStats) {
	if t == nil || during == nil || b.Rows == 0 && b.Dead == 0 {
		return
	}
	now := time.Now()
	t.to.Record(trace.Span{
		Context: during.Child(), Parent: during.Span, Name: "batch", Kind: trace.Client, Start: now.Add(-b.Took), End: now,
		Attributes: append(slices.Clip(t.facts),
			trace.Attribute{Key: "baton.source", Value: b.Source}, trace.Attribute{Key: "baton.rows", Value: b.Rows},
			trace.Attribute{Key: "baton.dead_letters", Value: b.Dead}, trace.Attribute{Key: "baton.bytes", Value: b.Bytes}),
	})
}

// traceBatches makes the spans of the following batches children of the run's span, until traceBatches is called again.
func (f *flushJob) traceBatches(r job.Run) {
	if f.traces != nil {
		of := trace.Of(r.ID)
		f.done.during.Store(&of)
	}
}

// traceRound makes the spans of the following batches children of a new span for one flush. It is for jobs without slots, whose run never
// ends. The new span has its own trace with a link to the run, because a trace of the whole run would have no end. The function end records
// the new span, if the flush has written anything or has failed.
func (f *flushJob) traceRound(ctx context.Context, r job.Run) (end func(error)) {
	if f.traces == nil || !schedule.IsAlways(f.Schedule) {
		return func(error) {}
	}
	of, began := trace.New(), time.Now()
	rows, dead := f.done.rows.Load(), f.done.dead.Load()
	f.done.during.Store(&of)
	return func(err error) {
		rows, dead := f.done.rows.Load()-rows, f.done.dead.Load()-dead
		failed := err != nil && ctx.Err() == nil
		if rows == 0 && dead == 0 && !failed {
			return
		}
		s := trace.Span{
			Context: of, Links: []trace.Context{trace.Of(r.ID)}, Name: "flush " + r.Job, Kind: trace.Internal,
			Start: began, End: time.Now(),
			Attributes: written(r, rows, dead),
		}
		if failed {
			s.Error = err.Error()
		}
		f.traces.Record(s)
	}
}
