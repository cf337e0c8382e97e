package redisledger

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOrderToCancelIsAnsweredOnce(t *testing.T) {
	_, l := ledgerRig(t)
	order := Cancel{Job: "users", ID: "c1", By: "by alice: wrong data"}
	for range 2 { // a reply was lost
		if err := l.OrderCancel(t.Context(), order, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.OrderCancel(t.Context(), Cancel{Job: "users", ID: "c2", By: "by bob"}, time.Minute); !errors.Is(err, ErrAsked) ||
		!strings.HasSuffix(err.Error(), "by alice: wrong data") {
		t.Errorf("a second one: %v", err)
	}
	o, err := l.Orders(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Cancel{order}, o.Cancels); diff != "" {
		t.Error(diff)
	}
	answer := Cancelled{Runs: []string{"r2", "r3"}, Retry: 2}
	for _, first := range []bool{true, false} {
		if answered, err := l.AnswerCancel(t.Context(), order, answer); answered != first || err != nil {
			t.Errorf("answered: %v, %v", answered, err)
		}
	}
	answer.ID = "c1"
	if diff := cmp.Diff(answer, stateOf(t, l, "users").Cancelled); diff != "" {
		t.Error(diff)
	}
	if withdrawn, err := l.WithdrawCancel(t.Context(), order); withdrawn || err != nil {
		t.Errorf("taken back when it was answered: %v, %v", withdrawn, err)
	}
}

func TestOrderToCancelIsGoodForAWhileOnly(t *testing.T) {
	_, l := ledgerRig(t)
	order := Cancel{Job: "users", ID: "c1", RunID: "r7", By: "by alice"}
	if err := l.OrderCancel(t.Context(), order, -time.Millisecond); err != nil {
		t.Fatal(err)
	}
	o, err := l.Orders(t.Context(), nil)
	if err != nil || len(o.Cancels) != 1 || !o.Cancels[0].Expired || o.Cancels[0].RunID != "r7" {
		t.Errorf("orders: %+v, %v", o, err)
	}
	order2 := Cancel{Job: "users", ID: "c2", RunID: "r7", By: "by bob"}
	if err := l.OrderCancel(t.Context(), order2, time.Minute); err != nil {
		t.Errorf("an order that has ended is in the way: %v", err)
	}
	if withdrawn, err := l.WithdrawCancel(t.Context(), order); withdrawn || err != nil {
		t.Errorf("the first: %v, %v", withdrawn, err)
	}
	if answered, err := l.AnswerCancel(t.Context(), order2, Cancelled{Error: "no such run"}); !answered || err != nil {
		t.Errorf("answered: %v, %v", answered, err)
	}
	if s := stateOf(t, l, "users"); s.Cancelled.ID != "c2" || s.Cancelled.Error != "no such run" {
		t.Errorf("%+v", s)
	}
	if err := l.OrderCancel(t.Context(), order, time.Minute); err != nil {
		t.Fatal(err)
	}
	if withdrawn, err := l.WithdrawCancel(t.Context(), order); !withdrawn || err != nil {
		t.Errorf("taken back: %v, %v", withdrawn, err)
	}
	if s := stateOf(t, l, "users"); s.Cancelled.ID != "c2" {
		t.Errorf("%+v", s)
	}
}
