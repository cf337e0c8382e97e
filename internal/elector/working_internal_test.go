package elector

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/heartbeat"
)

var shortTiming = heartbeat.Timing{
	TTL: 10 * time.Second, Interval: 2 * time.Second, Timeout: time.Second, Margin: 350 * time.Millisecond, Drain: 2 * time.Second,
}

func termOf(clock heartbeat.Clock) *Term {
	return &Term{closed: make(chan struct{}), window: heartbeat.NewWindow(clock, shortTiming, clock())}
}

// A run has checked the window, and loses the processor before it begins. Then the hard stop comes.
func TestARunThatTheHardStopOvertakesDoesNotBegin(t *testing.T) {
	term := termOf(func() heartbeat.Instant { return 0 }) // the run sees an open window
	if !term.working.bar() {
		t.Fatal("an idle term would end the process")
	}
	if term.Begin() {
		t.Error("a run began after the guard had let the process live")
	}
}

func TestWorkAndTheHardStopNeverBothComeFirst(t *testing.T) {
	const rounds = 2000
	for range rounds {
		var w working
		var began, barred bool
		var wg sync.WaitGroup
		wg.Go(func() { began = w.begin() })
		wg.Go(func() { barred = w.bar() })
		wg.Wait()
		if began == barred {
			t.Fatalf("the work began: %v, and the process may live on: %v", began, barred)
		}
	}
}

func TestAnotherPieceOfWorkStillCounts(t *testing.T) {
	term := termOf(func() heartbeat.Instant { return 0 })
	for range 2 {
		if !term.Begin() {
			t.Fatal("work did not begin in an open window")
		}
	}
	term.End()
	if term.working.bar() {
		t.Error("the process would live on beside a piece of work that goes on")
	}
	if term.End(); !term.working.bar() {
		t.Error("the term is idle, and would end the process")
	}
}

// The goroutine of a LeadFunc may get the processor for the first time when its term is over.
func TestALeadFuncThatGetsItsFirstTurnTooLateIsNotCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		term := termOf(func() heartbeat.Instant { return heartbeat.Instant(time.Since(began)) })
		time.Sleep(shortTiming.TTL)
		if !term.working.bar() {
			t.Error("a term whose LeadFunc was not called would end the process")
		}
		e := &Elector{lead: func(context.Context, *Term) error { t.Error("the LeadFunc was called"); return nil }}
		ctx, end := context.WithCancel(t.Context())
		returned := make(chan struct{})
		go func() { defer close(returned); _ = e.work(ctx, term) }()
		synctest.Wait()
		select {
		case <-returned:
			t.Error("it returned before the end of the term was known: that is a step-down, and not an expiry")
		default:
		}
		end()
		<-returned
	})
}
