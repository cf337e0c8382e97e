package redisledger

import (
	"errors"
	"testing"
	"time"

	"baton/internal/job"
)

// verification is how an operation stands at a leader of an epoch.
func verification(id string, epoch, records int64) OperationState {
	return OperationState{
		Operation: Operation{
			Job: "users", ID: id, Kind: KindVerify, By: "by alice", Trigger: "manual", Asked: time.Now().Truncate(time.Millisecond),
		},
		State: job.StateRunning, Epoch: epoch, NodeID: "n", Records: records,
	}
}

// A leader that was deposed may report once more. What its successor has recorded stays.
func TestAReportOfAnEarlierTermChangesNothing(t *testing.T) {
	_, l := ledgerRig(t)
	if err := l.AskOperation(t.Context(), verification("v1", 0, 0).Operation); err != nil {
		t.Fatal(err)
	}
	report := func(epoch, records int64, want error) {
		t.Helper()
		if err := l.ReportOperation(t.Context(), verification("v1", epoch, records)); !errors.Is(err, want) {
			t.Errorf("a report of epoch %d: %v, want %v", epoch, err, want)
		}
	}
	stands := func(records int64) {
		t.Helper()
		if s := stateOf(t, l, "users"); s.Operation == nil || s.Operation.Records != records {
			t.Errorf("the operation stands at %+v, want %d records", s.Operation, records)
		}
	}
	report(7, 10, nil)
	report(8, 3, nil) // the next term has begun again at its last place
	report(7, 20, ErrOver)
	stands(3)
	late := verification("v1", 7, 30)
	late.State = job.StateSucceeded
	if err := l.EndOperation(t.Context(), late); !errors.Is(err, ErrOver) {
		t.Errorf("the end of an earlier term: %v", err)
	}
	if o, err := l.Orders(t.Context(), nil); err != nil || len(o.Operations) != 1 {
		t.Errorf("the order is %+v, %v: whoever leads must go on with it", o.Operations, err)
	}
	stands(3)
	report(8, 4, nil)
	over := verification("v1", 8, 40)
	over.State = job.StateSucceeded
	if err := l.EndOperation(t.Context(), over); err != nil {
		t.Fatal(err)
	}
	report(9, 50, ErrOver)
	stands(40)
	if s := stateOf(t, l, "users"); s.Verified == nil || s.Verified.Records != 40 {
		t.Errorf("the last verification is %+v", s.Verified)
	}
	// Another operation may be an earlier term's: Redis has lost its data, and epochs begin anew.
	if err := l.AskOperation(t.Context(), verification("v2", 0, 0).Operation); err != nil {
		t.Fatal(err)
	}
	if err := l.ReportOperation(t.Context(), verification("v2", 2, 1)); err != nil {
		t.Errorf("the first report of another operation: %v", err)
	}
	stands(1)
}
