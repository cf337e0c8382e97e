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

// ErrOver means that an operation is over, or that a later term goes on with it.
var ErrOver = errors.New("the operation is over, or another node goes on with it")

// The kinds of operations.
const (
	KindVerify   = "verify"
	KindBackfill = "backfill"
)

// Operation is an order that takes long and goes on beside the runs of a job. A job has one at a time. It is
// carried out by the leader, and after a takeover by the next one.
type Operation struct {
	Job      string    `json:"-"`
	ID       string    `json:"id"`
	Kind     string    `json:"kind"`
	By       string    `json:"by"`                 // "by alice: reason"
	Trigger  string    `json:"trigger"`            // manual or schedule
	Asked    time.Time `json:"asked"`              // by the clock of the one who asks
	Sample   float64   `json:"sample,omitempty"`   // part of the keys; 0: all
	Rate     int       `json:"rate,omitempty"`     // keys a second; 0: any
	Examples int       `json:"examples,omitempty"` // of each kind
	Repair   bool      `json:"repair,omitempty"`
}

// OperationState is how an operation stands, or how it ended.
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
	Progress json.RawMessage `json:"progress,omitempty"` // how far it is, in its own form
}

// AskOperation asks the leader, and leaders after it, for an operation. [ErrAsked] if another one of the job is
// not over. A repeated call with the same ID is one order.
func (l *Ledger) AskOperation(ctx context.Context, o Operation) error {
	switch reply, err := l.operation(ctx, "ask", o, 0, o); {
	case err != nil:
		return fmt.Errorf("ask for the operation %s of job %q: %w", o.Kind, o.Job, err)
	case reply == "asked":
		return fmt.Errorf("%w: a verification or backfill of job %q is not over", ErrAsked, o.Job)
	}
	l.wake(ctx)
	return nil
}

// ReportOperation records how far an operation is. [ErrOver] if it should not go on here.
func (l *Ledger) ReportOperation(ctx context.Context, s OperationState) error {
	return l.record(ctx, "report", s)
}

// EndOperation records how an operation has ended, and adds it to the history of the job. A cancellation needs
// no leader.
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

// operationIn decodes an operation of the control hash.
func operationIn(name, text string) (Operation, bool) {
	o := Operation{Job: name}
	return o, json.Unmarshal([]byte(text), &o) == nil && o.ID != ""
}

// operationOf decodes the state of an operation; nil if there is none.
func operationOf(name, text string) *OperationState {
	s := OperationState{}
	if json.Unmarshal([]byte(text), &s) != nil || s.ID == "" {
		return nil
	}
	s.Job = name
	return &s
}
