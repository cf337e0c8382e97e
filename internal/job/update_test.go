package job_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the zones must be the same on every machine

	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/plan"
	"baton/internal/job/schedule"
)

func (n *node) update(jobs ...job.Job) {
	n.t.Helper()
	if err := n.Update(context.Background(), job.Workload{Jobs: jobs}); err != nil {
		n.t.Errorf("update: %v", err)
	}
	synctest.Wait()
}

// names returns work that records its name when it runs.
func names(told *[]string, name string, d time.Duration) job.Func {
	return func(ctx context.Context, r job.Run) (job.Result, error) {
		*told = append(*told, name)
		return takes(d)(ctx, r)
	}
}

func TestUpdateLetsRunsEndAndStartsTheNewWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		n := lead(t, jobtest.NewLedger("me"), every(t, "flush", "10s", names(&told, "old", 5*time.Second)))
		after(12 * time.Second)
		n.update(every(t, "flush", "10s", names(&told, "new", time.Second)))
		want(t, "running", len(n.Running()), 1)
		after(13 * time.Second)
		n.end()
		want(t, "work", told, []string{"old", "new"})
		want(t, "states", n.states(), []job.State{job.StateSucceeded, job.StateSucceeded})
	})
}

func TestNothingOfWhatWasReplacedStartsAfterAnUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpClaim, 0, time.Hour, jobtest.Fault{Delay: 900 * time.Millisecond})
		n := lead(t, ledger, every(t, "flush", "10s", names(&told, "old", 0)), every(t, "gone", "10s", names(&told, "gone", 0)))
		after(10*time.Second + 500*time.Millisecond) // the claims are in progress
		n.update(every(t, "flush", "10s", names(&told, "new", 0)))
		after(5 * time.Second)
		n.end()
		want(t, "work", told, []string{"new"})
		for _, rec := range ledger.Records() {
			if rec.Job == "gone" {
				want(t, "error", rec.Error, "not started: the job is no longer configured")
			}
		}
	})
}

func TestUpdateOfTheScheduleCountsFromNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		j := with(every(t, "flush", "10s", takes(15*time.Second)), func(j *job.Job) { j.Overlap = plan.OverlapQueueOne })
		n := lead(t, ledger, j)
		after(21 * time.Second) // 20 waits
		changed := every(t, "flush", "1m", nothing)
		changed.CatchUp = plan.CatchUpAll
		n.update(changed)
		next, _ := n.Next("flush")
		want(t, "next", next.Sub(n.start), time.Minute)
		after(45 * time.Second)
		n.end()
		want(t, "starts", n.starts("flush"), []float64{10, 60})
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonOverlap: 1})
	})
}

func TestUpdateThatChangesNoScheduleLosesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cron := func(work job.Func) job.Job {
			zone, err := time.LoadLocation("Europe/Berlin")
			if err != nil {
				t.Fatal(err)
			}
			s, err := schedule.Parse("* * * * *", zone)
			if err != nil {
				t.Fatal(err)
			}
			return job.Job{Name: "flush", Schedule: s, Run: work, Overlap: plan.OverlapQueueOne}
		}
		n := lead(t, jobtest.NewLedger("me"), cron(takes(61*time.Second)))
		for range 10 {
			after(20 * time.Second)
			n.update(cron(takes(61 * time.Second)))
		}
		n.end()
		want(t, "starts", n.starts("flush"), []float64{60, 120, 180})
		want(t, "missed", n.misses(), map[job.Reason]int{})
	})
}

func TestUpdateKeepsARetrialIfThereAreAny(t *testing.T) {
	for _, limit := range []int{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			ledger := jobtest.NewLedger("me")
			n := lead(t, ledger, retried(t, "1h", plan.Retry{Limit: 1, Delay: 10 * time.Minute}, failing))
			after(time.Hour + time.Minute)
			n.update(retried(t, "1h", plan.Retry{Limit: limit, Delay: time.Minute}, nothing))
			if limit == 0 {
				want(t, "pending", ledger.Retry("flush") == nil, true)
			}
			after(20 * time.Minute)
			n.end()
			want(t, "starts", len(n.starts("flush")), 1+limit/2)
		})
	}
}

func TestUpdateAddsAndTakesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.SetLast("known", time.Now().Add(-time.Hour))
		n := lead(t, ledger, every(t, "gone", "10s", takes(6*time.Second)))
		after(12 * time.Second)
		catchUp := func(name string) job.Job {
			return with(every(t, name, "10s", nothing), func(j *job.Job) { j.CatchUp = plan.CatchUpLatest })
		}
		n.update(catchUp("known"), catchUp("unknown"))
		if _, ok := n.Next("gone"); ok {
			t.Error("a job that is gone has a next slot")
		}
		want(t, "asked for", errors.Is(n.RunNow(t.Context(), job.Manual{Job: "gone", ID: "1"}), job.ErrUnknown), true)
		after(10 * time.Second)
		n.end()
		want(t, "starts of the one gone", n.starts("gone"), []float64{10})
		want(t, "its state", n.records()[0].State, job.StateSucceeded)
		want(t, "starts of the one known", n.starts("known"), []float64{20})
		want(t, "starts of the one unknown", n.starts("unknown"), []float64{20})
		// At 10 this term led, but without the job.
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonNoLeader: 360, job.ReasonUnknown: 1})
		unknown := 0
		for _, m := range ledger.Missed() {
			if m.Job == "unknown" && m.Reason == job.ReasonUnknown {
				unknown++
			}
		}
		want(t, "marks", unknown, 1)
	})
}

func TestJobThatComesBackWhileItsRunGoesOnIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := lead(t, jobtest.NewLedger("me"), every(t, "flush", "10s", takes(15*time.Second)))
		after(12 * time.Second)
		n.update()
		n.update(every(t, "flush", "10s", takes(15*time.Second)))
		after(20 * time.Second)
		n.end()
		want(t, "starts", n.starts("flush"), []float64{10, 30})
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonOverlap: 1})
	})
}

func TestUpdateOfAJobThatRunsAllTheTime(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(testing.TB, job.Job) []job.Job
		error   string
		starts  []float64
		running int
	}{
		{"SameWorkGoesOn", func(_ testing.TB, j job.Job) []job.Job { return []job.Job{j} }, "", []float64{0}, 1},
		{"OtherWorkIsStartedAtOnce", func(_ testing.TB, j job.Job) []job.Job {
			return []job.Job{with(j, func(j *job.Job) { j.Version = "2" })}
		}, "the configuration was reloaded", []float64{0, 60}, 1},
		{"Gone", func(testing.TB, job.Job) []job.Job { return nil }, "the job is no longer configured", []float64{0}, 0},
		{"OfASchedule", func(t testing.TB, j job.Job) []job.Job {
			return []job.Job{every(t, j.Name, "45s", nothing)}
		}, "the job is no longer @always", []float64{0, 90}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := always(t, "flush", lasting)
				n := lead(t, jobtest.NewLedger("me"), j)
				after(time.Minute)
				n.update(c.change(t, j)...)
				after(35 * time.Second)
				want(t, "starts", n.starts("flush"), c.starts)
				want(t, "running", len(n.Running()), c.running)
				if c.error != "" {
					want(t, "error", n.records()[0].Error, c.error)
				}
				n.end()
			})
		})
	}
}

func TestJobThatBecomesAlwaysStartsWhenItsRunHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := lead(t, jobtest.NewLedger("me"), every(t, "flush", "1m", takes(10*time.Second)), every(t, "idle", "1h", nothing))
		after(65 * time.Second)
		n.update(always(t, "flush", lasting), always(t, "idle", lasting))
		want(t, "starts of the idle one", n.starts("idle"), []float64{65})
		after(time.Minute)
		want(t, "starts", n.starts("flush"), []float64{60, 70})
		want(t, "state of the one before", n.records()[0].State, job.StateSucceeded)
		n.end()
	})
}

func TestUpdateMakesRoomAndTakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := []job.Job{every(t, "a", "10s", takes(time.Hour)), every(t, "b", "10s", takes(time.Hour)),
			every(t, "c", "10s", takes(time.Hour))}
		n := leadAs(t, jobtest.NewLedger("me"), "me", limited(1, jobs...), nil)
		after(11 * time.Second)
		want(t, "running", len(n.Running()), 1)
		if err := n.Update(t.Context(), limited(2, jobs...)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		want(t, "running", len(n.Running()), 2)
		n.end()
	})
}

// Running runs continue above a lowered limit. When a run ends, no other run takes its place until the number of runs is below the
// limit.
func TestUpdateThatLowersTheLimitLetsNothingBeginAboveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jobs []job.Job
		for _, name := range []string{"a", "b", "c"} {
			j := every(t, name, "10s", takes(15*time.Second))
			j.Overlap = plan.OverlapQueueOne
			jobs = append(jobs, j)
		}
		n := leadAs(t, jobtest.NewLedger("me"), "me", limited(3, jobs...), nil)
		after(22 * time.Second)
		want(t, "running", len(n.Running()), 3)
		if err := n.Update(t.Context(), limited(1, jobs...)); err != nil {
			t.Error(err)
		}
		for range 10 {
			after(10 * time.Second)
			want(t, "running", len(n.Running()), 1)
		}
		n.end()
	})
}

func TestUpdateOfWhatCannotBeIsRefusedAndBetweenTermsAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := lead(t, jobtest.NewLedger("me"), every(t, "flush", "10s", nothing))
		if err := n.Update(t.Context(), job.Workload{Jobs: []job.Job{{Name: "flush"}}}); err == nil {
			t.Error("a job without work is taken")
		}
		after(11 * time.Second)
		n.end()
		want(t, "starts", n.starts("flush"), []float64{10})
		if err := n.Update(t.Context(), job.Workload{}); !errors.Is(err, job.ErrNotLeader) {
			t.Errorf("between terms: %v", err)
		}
	})
}

func TestARunOfAJobThatWasRemovedCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := lead(t, jobtest.NewLedger("me"), every(t, "flush", "10s", takes(time.Hour)))
		after(12 * time.Second)
		n.update()
		ids, err := n.Cancel(t.Context(), "flush", "", "by alice")
		if err != nil || len(ids.Runs) != 1 {
			t.Errorf("cancelled: %v, %v", ids, err)
		}
		synctest.Wait()
		if _, err := n.Cancel(t.Context(), "flush", "", "by alice"); !errors.Is(err, job.ErrUnknown) {
			t.Errorf("when its last run has ended: %v", err)
		}
		n.end()
		want(t, "states", n.states(), []job.State{job.StateCancelled})
	})
}
