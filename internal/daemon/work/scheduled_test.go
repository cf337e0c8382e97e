package work

import (
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/job"
	"baton/internal/job/schedule"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redisledger"
	"baton/internal/testsupport"
)

// A leader decides to order a verification, and is suspended. The next leader orders and ends the verification, and an operator orders one
// more. The first leader wakes up and sends its order. A third leader continues after the slot that was ordered.
func TestASuspendedLeaderOrdersNoVerificationTwice(t *testing.T) {
	store := redistest.Open(t, redisconn.Options{URL: testsupport.StartRedis(t).URL(), ClientName: "baton-test"})
	ledger := redisledger.NewLedger(store, redisledger.LedgerOptions{LockKey: "baton"})
	slots, err := schedule.ParseIn("0 0 1 1 *", "UTC")
	if err != nil {
		t.Fatal(err)
	}
	slot := slots.Next(time.Now().AddDate(-1, 0, 0))
	leader := func(next time.Time) (*Term, *verification) {
		of := config.Job{Name: "users", Flush: config.Flush{Verify: config.Verify{Schedule: "0 0 1 1 *"}}}
		return &Term{Lock: Lock{Ledger: ledger}}, &verification{
			boundTask: boundTask{task: Task{Task: tasks.Task{Config: of}}, job: job.Job{Name: "users"}}, slots: slots, next: next,
		}
	}
	end := func(want int) {
		t.Helper()
		given, err := ledger.Orders(t.Context(), nil)
		if err != nil || len(given.Operations) != want {
			t.Fatalf("%d verifications are ordered, %v, want %d", len(given.Operations), err, want)
		}
		for _, o := range given.Operations {
			if err := ledger.EndOperation(t.Context(), redisledger.OperationState{Operation: o, State: job.StateSucceeded}); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, suspended := leader(slot)
	second, v := leader(slot)
	if err := second.orderIfDue(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	end(1)
	manual := redisledger.Operation{Job: "users", ID: "m", Kind: redisledger.KindVerify, Trigger: string(job.TriggerManual), Asked: time.Now()}
	if err := ledger.AskOperation(t.Context(), manual); err != nil {
		t.Fatal(err)
	}
	end(1)
	if err := first.orderIfDue(t.Context(), suspended); err != nil || !suspended.next.Equal(v.next) {
		t.Errorf("the next slot of the first leader is %v, %v, want %v", suspended.next, err, v.next)
	}
	end(0)
	third, v := leader(time.Time{})
	if last, err := third.lastScheduled(t.Context(), "users"); err != nil || last.Before(slot) {
		t.Errorf("the third leader continues after %v, %v, want %v or later", last, err, slot)
	}
	if err := third.orderIfDue(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	end(0)
}
