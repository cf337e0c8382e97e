package redisledger

import (
	"errors"
	"testing"
	"time"

	"baton/internal/job"
)

// verification returns the state of a verification that the leader with the given epoch has reported.
func verification(id string, epoch, records int64) OperationState {
	return OperationState{
		Operation: Operation{
			Job: "users", ID: id, Kind: KindVerify, By: "by alice", Trigger: "manual", Asked: time.Now().Truncate(time.Millisecond),
		},
		State: job.StateRunning, Epoch: epoch, NodeID: "n", Records: records,
	}
}

// A deposed leader may report once more. The records of its successor must stay.
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
	report(8, 3, nil) // the next term continues from the last recorded progress
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
	// Another operation may have a lower epoch, because Redis has lost its data, and the epochs begin again.
	if err := l.AskOperation(t.Context(), verification("v2", 0, 0).Operation); err != nil {
		t.Fatal(err)
	}
	if err := l.ReportOperation(t.Context(), verification("v2", 2, 1)); err != nil {
		t.Errorf("the first report of another operation: %v", err)
	}
	stands(1)
}

// A leader is suspended before it orders a scheduled verification. The next leader orders the verification, which ends, and an operator
// orders another one. The late order must not verify the same slot again, and a lost reply must not order it twice.
func TestALateOrderOfASlotIsNoSecondVerification(t *testing.T) {
	_, l := ledgerRig(t)
	slot := time.Now().Add(-time.Minute).Truncate(time.Second)
	ask := func(id string, slot, asked time.Time) int {
		t.Helper()
		o := verification(id, 0, 0).Operation
		o.Slot, o.Asked = slot, asked
		if err := l.AskOperation(t.Context(), o); err != nil && !errors.Is(err, ErrAsked) {
			t.Fatal(err)
		}
		given, err := l.Orders(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(given.Operations)
	}
	over := func(id string) {
		t.Helper()
		s := verification(id, 7, 1)
		s.State = job.StateSucceeded
		if err := l.EndOperation(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if n := ask("v1", slot, slot.Add(30*time.Second)); n != 1 {
		t.Fatalf("%d orders", n)
	}
	over("v1")
	if n := ask("v2", time.Time{}, time.Now()); n != 1 {
		t.Fatalf("an operator has ordered %d", n)
	}
	if n := ask("v3", slot.Add(time.Hour), slot.Add(time.Hour)); n != 1 {
		t.Errorf("%d orders beside the operator's", n)
	}
	over("v2")
	for _, late := range []time.Duration{0, 20 * time.Second, time.Hour} {
		if n := ask("late", slot.Add(late), time.Now()); n != 0 {
			t.Errorf("the slot %v later was ordered again", late)
		}
	}
	if s := stateOf(t, l, "users"); !s.VerifiedUntil.Equal(slot.Add(time.Hour)) {
		t.Errorf("the slots are ordered until %v", s.VerifiedUntil)
	}
	if n := ask("v4", slot.Add(2*time.Hour), slot.Add(49*time.Hour)); n != 1 { // by a host with a wrong clock
		t.Errorf("the next slot: %d orders", n)
	}
	over("v4")
	if n := ask("v5", slot.Add(3*time.Hour), slot.Add(3*time.Hour)); n != 1 {
		t.Errorf("after the order of a host with a wrong clock: %d orders", n)
	}
}

// The record of a preview contains values of rows, so it expires. It is not in the hash that every poll reads.
func TestTheProgressOfAPreviewExpires(t *testing.T) {
	g, l := ledgerRig(t)
	if s, err := l.Preview(t.Context(), "users"); err != nil || s != nil {
		t.Errorf("without a record: %+v, %v", s, err)
	}
	if err := l.KeepPreview(t.Context(), verification("p1", 0, 42)); err != nil {
		t.Fatal(err)
	}
	key := l.keys.Preview("users")
	if left := g.Num("PTTL", key); left <= 0 || left > PreviewKept.Milliseconds() || g.Num("EXISTS", l.keys.Job("users")) != 0 {
		t.Errorf("the record expires in %d ms", left)
	}
	if s, err := l.Preview(t.Context(), "users"); err != nil || s == nil || s.Records != 42 || s.Job != "users" {
		t.Errorf("the record: %+v, %v", s, err)
	}
	if err := l.DropPreview(t.Context(), "users"); err != nil || g.Num("EXISTS", key) != 0 {
		t.Errorf("the record was not removed: %v", err)
	}
}
