package redisledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/job"
)

var operationScript = ledgerScript(3, "job_operation")

// ErrOver means that an operation has ended, or that a later term continues it.
var ErrOver = errors.New("the operation has ended, or another node continues it")

// These are the kinds of operations.
const (
	KindVerify   = "verify"
	KindBackfill = "backfill"
	KindPreview  = "preview"
)

// Operation is an order that takes long to carry out, in parallel with the runs of a job. A job has one operation at a time. The leader
// carries out the operation, and after a takeover the next leader continues it.
type Operation struct {
	Job      string    `json:"-"`
	ID       string    `json:"id"`
	Kind     string    `json:"kind"`
	By       string    `json:"by"`                 // "by alice: reason"
	Trigger  string    `json:"trigger"`            // manual or schedule
	Asked    time.Time `json:"asked"`              // by the clock of the host that gave the order
	Sample   float64   `json:"sample,omitempty"`   // the share of the keys; 0: all keys
	Rate     int       `json:"rate,omitempty"`     // the maximum number of keys per second; 0: no limit
	Examples int       `json:"examples,omitempty"` // the number of examples of each kind
	Repair   bool      `json:"repair,omitempty"`
	// Slot is the slot of an order by schedule, or zero. It identifies the order.
	Slot time.Time `json:"slot,omitzero"`
}

// OperationState is the present or last state of an operation.
type OperationState struct {
	Operation
	State    job.State       `json:"state"` // running, succeeded, failed or cancelled
	Started  time.Time       `json:"started"`
	Updated  time.Time       `json:"updated"`
	Finished time.Time       `json:"finished"`
	NodeID   string          `json:"node_id"`
	Owner    string          `json:"owner"`
	Epoch    int64           `json:"epoch"`
	Error    string          `json:"error,omitempty"`
	Records  int64           `json:"records,omitempty"`
	Progress json.RawMessage `json:"progress,omitempty"` // the progress, in the form of this kind of operation
}

// AskOperation orders an operation from the leader, and from the leaders after it. It returns [ErrAsked] if another operation of the
// job has not ended. Calls with the same ID are one order. An order by schedule also covers all earlier slots. So a late order of a deposed
// leader, for a slot that another leader has already ordered, does nothing.
func (l *Ledger) AskOperation(ctx context.Context, o Operation) error {
	var scheduled []any
	if !o.Slot.IsZero() {
		scheduled = []any{o.Slot.UnixMilli(), o.Asked.UnixMilli()}
	}
	switch reply, err := l.operation(ctx, "ask", o, 0, o, scheduled...); {
	case err != nil:
		return fmt.Errorf("ask for the operation %s of job %q: %w", o.Kind, o.Job, err)
	case reply == "asked":
		return fmt.Errorf("%w: a verification or backfill of job %q has not ended", ErrAsked, o.Job)
	}
	l.wake(ctx)
	return nil
}

// ReportOperation records the progress of an operation. It returns [ErrOver] if this node must not continue the operation.
func (l *Ledger) ReportOperation(ctx context.Context, s OperationState) error {
	return l.record(ctx, "report", s)
}

// EndOperation records the end of an operation, and adds it to the history of the job. Any node may record a cancellation, but only
// the leader may record another end.
func (l *Ledger) EndOperation(ctx context.Context, s OperationState) error {
	verified := "0"
	if s.Kind == KindVerify && (s.State == job.StateSucceeded || s.State == job.StateFailed) {
		verified = "1"
	}
	rec := job.Record{
		Run: job.Run{
			ID: s.ID, Job: s.Job, Slot: s.Asked, Trigger: job.Trigger(s.Trigger), Attempt: 1, By: s.Kind + " " + s.By,
			Term: job.Term{NodeID: s.NodeID, Owner: s.Owner, Epoch: s.Epoch},
		},
		State: s.State, Started: s.Started, Finished: s.Finished, Error: s.Error, Result: job.Result{Rows: s.Records},
	}
	more := []any{verified, l.options.Keep, l.options.MaxAge.Milliseconds()}
	return l.record(ctx, "end", s, append(append(more, startFields(rec)...), endFields(rec)...)...)
}

// PreviewKept is how long the progress of a preview is kept after its last record.
const PreviewKept = 7 * 24 * time.Hour

// KeepPreview records how far a preview of all keys has compared, so that another process can continue the preview. A preview has no order
// and no leader, because any process may make one. Its ID identifies the mapping and the table that it compares.
func (l *Ledger) KeepPreview(ctx context.Context, s OperationState) error {
	text, err := json.Marshal(s)
	if err == nil {
		_, err = l.preview(ctx, "SET", l.keys.Preview(s.Job), string(text), "PX", PreviewKept.Milliseconds())
	}
	if err != nil {
		return fmt.Errorf("record the progress of the preview of job %q: %w", s.Job, err)
	}
	return nil
}

// Preview returns the recorded progress of a preview that has not ended, or that was interrupted. It returns nil without a record.
func (l *Ledger) Preview(ctx context.Context, job string) (*OperationState, error) {
	text, err := redis.String(l.preview(ctx, "GET", l.keys.Preview(job)))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return nil, fmt.Errorf("read the progress of the preview of job %q: %w", job, err)
	}
	return operationOf(job, text), nil
}

// DropPreview removes the record of a preview that has ended.
func (l *Ledger) DropPreview(ctx context.Context, job string) error {
	if _, err := l.preview(ctx, "UNLINK", l.keys.Preview(job)); err != nil {
		return fmt.Errorf("remove the progress of the preview of job %q: %w", job, err)
	}
	return nil
}

func (l *Ledger) preview(ctx context.Context, command string, args ...any) (any, error) {
	return l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) { return redis.DoContext(c, ctx, command, args...) })
}

func (l *Ledger) record(ctx context.Context, verb string, s OperationState, more ...any) error {
	reply, err := l.operation(ctx, verb, s.Operation, s.Epoch, s, more...)
	switch {
	case err != nil:
		return fmt.Errorf("record the operation %s of job %q: %w", s.Kind, s.Job, err)
	case reply == "gone":
		return fmt.Errorf("%s %s of job %q: %w", s.Kind, s.ID, s.Job, ErrOver)
	}
	return nil
}

func (l *Ledger) operation(ctx context.Context, verb string, o Operation, epoch int64, state any, more ...any) (string, error) {
	text, err := json.Marshal(state)
	if err != nil {
		return "", err
	}
	args := []any{
		l.keys.Job(o.Job), l.keys.Control(), l.keys.Runs(o.Job), l.keys.Operation(o.Job), o.ID, verb, epoch, string(text),
	}
	return redis.String(l.script(ctx, operationScript, append(args, more...)))
}

// operationIn decodes an operation that is in the control hash.
func operationIn(name, text string) (Operation, bool) {
	o := Operation{Job: name}
	return o, json.Unmarshal([]byte(text), &o) == nil && o.ID != ""
}

// operationOf decodes the state of an operation. It returns nil if the text is empty or unreadable.
func operationOf(name, text string) *OperationState {
	s := OperationState{}
	if json.Unmarshal([]byte(text), &s) != nil || s.ID == "" {
		return nil
	}
	s.Job = name
	return &s
}
