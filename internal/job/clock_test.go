package job_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zapcore"

	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/plan"
)

// wall is a clock that can be set.
type wall struct {
	mu sync.Mutex
	by time.Duration
}

func (w *wall) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.by)
}

func (w *wall) set(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by = by
}

// A host's clock is 2 h wrong for a while, in either direction. The ledger's clock is right. A slot is run exactly once if the host's
// clock is right again within the deadline of the slot.
func TestClockThatIsWrongForAWhileLosesNoSlot(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []time.Duration // the steps last 10 minutes each
	}{
		{"Forward", []time.Duration{2 * time.Hour, 0}},
		{"Back", []time.Duration{-2 * time.Hour, 0}},
		{"ForwardAndBack", []time.Duration{2 * time.Hour, -2 * time.Hour, 0}},
		{"BackAndForward", []time.Duration{-2 * time.Hour, 2 * time.Hour, 0}},
	} {
		for _, policy := range []plan.CatchUp{plan.CatchUpNone, plan.CatchUpLatest, plan.CatchUpAll} {
			t.Run(c.name+"/"+string(policy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { stepClock(t, c.steps, policy) })
			})
		}
	}
}

func stepClock(t *testing.T, steps []time.Duration, policy plan.CatchUp) {
	time.Sleep(5 * time.Minute)
	ledger, clock := jobtest.NewLedger("me"), &wall{}
	often := with(every(t, "often", "1m", nothing), func(j *job.Job) { j.CatchUp = policy })
	hourly := with(every(t, "hourly", "1h", nothing), func(j *job.Job) { j.CatchUp = policy })
	jobs := []job.Job{often, hourly}
	n := leadAs(t, ledger, "me", job.Workload{Jobs: jobs}, clock.now)
	after(20*time.Minute + 30*time.Second)
	wrong := time.Now()
	for _, by := range steps {
		clock.set(by)
		after(10*time.Minute + 15*time.Second)
	}
	right := time.Now().Add(-10*time.Minute - 15*time.Second)
	after(3 * time.Hour)
	n.end()
	for _, j := range jobs {
		starts, missed := map[time.Time]int{}, map[time.Time]int{}
		for _, r := range n.started {
			if r.Job == j.Name {
				starts[r.Slot.UTC()]++
			}
		}
		for _, m := range ledger.Missed() {
			if m.Job == j.Name && m.Count > 0 {
				for at := m.First; !at.After(m.Slot); at = j.Schedule.Next(at) {
					missed[at.UTC()]++
				}
			}
		}
		for at := j.Schedule.Next(n.start); at.Before(time.Now()); at = j.Schedule.Next(at) {
			at = at.UTC()
			wasWrong := at.After(wrong) && at.Before(right.Add(-30*time.Second))
			run, told := starts[at], missed[at]
			mayMiss := wasWrong && policy != plan.CatchUpAll
			if run+told != 1 || told > 0 && !mayMiss {
				t.Errorf("%s: slot %v: %d starts, told as missed %d times", j.Name, at.Sub(n.start), run, told)
			}
		}
	}
}

func TestClockThatIsSetBackDoesNotAskForClaimedSlotsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger, clock := jobtest.NewLedger("me"), &wall{}
		claims := 0
		ledger.Disturb = func(op jobtest.Op, _ job.Run) jobtest.Fault {
			if op == jobtest.OpClaim {
				claims++
			}
			return jobtest.Fault{}
		}
		n := leadAs(t, ledger, "me", job.Workload{Jobs: []job.Job{every(t, "flush", "1m", nothing)}}, clock.now)
		after(10*time.Minute + time.Second)
		clock.set(-2 * time.Hour)
		after(time.Hour)
		want(t, "claims", claims, 10)
		n.end()
	})
}

// While a machine is suspended, its monotonic clock stops, and only the wall clock continues. The trust window has closed by the end of
// the suspend.
func TestTermThatEndsInASuspendStartsNothingAfterIt(t *testing.T) {
	for _, late := range []time.Duration{0, 15 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ledger, clock := jobtest.NewLedger("me"), &wall{}
			ledger.Clock = clock.now
			n := leadAs(t, ledger, "me", job.Workload{Jobs: []job.Job{
				with(every(t, "flush", "1m", nothing), func(j *job.Job) { j.CatchUp = plan.CatchUpLatest })}}, clock.now)
			after(90 * time.Second)
			clock.set(2 * time.Hour)
			if late == 0 {
				n.stop(errSteppedDown)
			}
			after(late)
			n.end()
			starts, missed := []float64{60}, 0
			if late > 0 { // the latest slot is run, as far as this node knew
				starts, missed = append(starts, 7260), 119
			}
			want(t, "starts", n.starts("flush"), starts)
			want(t, "missed", n.misses()[job.ReasonLate], missed)
		})
	}
}

func TestTermThatBeginsWithAWrongClockDoesNotHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(5 * time.Second)
		ledger, clock := jobtest.NewLedger("me"), &wall{}
		clock.set(2 * time.Hour)
		ledger.SetLast("flush", time.Now().Add(-10*time.Minute))
		latest := func(name string) job.Job {
			return with(every(t, name, "10m", nothing), func(j *job.Job) { j.CatchUp = plan.CatchUpLatest })
		}
		n := leadAs(t, ledger, "me", job.Workload{Jobs: []job.Job{latest("flush"), latest("new")}}, clock.now)
		after(5 * time.Minute)
		clock.set(0)
		after(30 * time.Minute)
		n.end()
		want(t, "starts", n.starts("flush"), []float64{-5, 595, 1195, 1795})
		want(t, "starts of the new one", n.starts("new"), []float64{595, 1195, 1795})
		want(t, "missed", n.misses(), map[job.Reason]int{})
	})
}

func TestSlotAheadOfTheLedgersClockIsToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger, clock := jobtest.NewLedger("me"), &wall{}
		n := leadAs(t, ledger, "me", job.Workload{Jobs: []job.Job{every(t, "flush", "1m", nothing)}}, clock.now)
		after(30 * time.Second)
		clock.set(2 * time.Hour)
		after(3 * time.Minute)
		n.end()
		warned := n.logs.FilterMessageSnippet("in the future by the ledger's clock").FilterLevelExact(zapcore.WarnLevel).Len()
		if warned < 2 || warned > 4 {
			t.Errorf("%d warnings in three minutes", warned)
		}
	})
}

// The clock of the host is put an hour forward, so that its slots are in the future by the ledger's clock. The slots continue as soon
// as the clocks are compared, and not only when the ledger would be asked again.
func TestSlotsGoOnOnceTheClocksAreCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(5 * time.Minute)
		clock := &wall{}
		n := leadWith(t, jobtest.NewLedger("me"), "me", job.Workload{Jobs: []job.Job{every(t, "often", "5s", nothing)}},
			job.Config{Clock: clock.now, CompareClocks: func() bool { clock.set(0); return true }}, bubbleStart())
		after(11 * time.Second)
		clock.set(time.Hour)
		after(11 * time.Second)
		n.end()
		starts := n.starts("often")
		want(t, "starts", len(starts), 4)
		want(t, "missed", n.misses(), map[job.Reason]int{})
	})
}

// The clock of slots is set forward while the loop sleeps. The loop reads the clock at once.
func TestTheLoopLooksAtAClockThatWasSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(5 * time.Minute)
		clock, set := &wall{}, make(chan struct{}, 1)
		n := leadWith(t, jobtest.NewLedger("me"), "me", job.Workload{Jobs: []job.Job{every(t, "hourly", "1h", nothing)}},
			job.Config{Clock: clock.now, ClockSet: set}, bubbleStart())
		after(11 * time.Second)
		clock.set(time.Hour)
		set <- struct{}{}
		synctest.Wait()
		seen := n.logs.FilterMessageSnippet("the wall clock has jumped").Len()
		n.end()
		want(t, "jumps seen", seen, 1)
	})
}
