package job_test

import (
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/plan"
)

// Misses that wait while the ledger is away are recorded together only if they have the same reason, so that the history has the reason
// of each slot.
func TestSlotsMissedForDifferentReasonsAreRecordedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpMiss, 6*time.Second, 5*time.Minute, jobtest.Fault{Lost: true})
		n := lead(t, ledger, every(t, "flush", "5s", takes(47*time.Second)))
		after(20 * time.Second)
		ledger.Pause("flush", "by alice") // the run goes on until 52
		after(6 * time.Minute)
		n.end()
		told, recorded := n.misses(), map[job.Reason]int{}
		for _, m := range ledger.Missed() {
			if m.Count > 0 {
				recorded[m.Reason] += m.Count
			}
		}
		want(t, "missed by overlap", told[job.ReasonOverlap], 9)
		want(t, "missed by the pause", told[job.ReasonPaused] > 0, true)
		want(t, "recorded", recorded, told)
	})
}

// Slots before a term are no_leader only for the time in which the lock was free. Before that time a node may have led, and may have
// made the slots wait.
func TestNobodyIsSaidToHaveLedOnlyWhileTheLockWasFree(t *testing.T) {
	for name, c := range map[string]struct {
		free   time.Duration // before the term
		missed map[job.Reason]int
	}{
		"FreeForAWhile":     {25 * time.Second, map[job.Reason]int{job.ReasonUnknown: 3, job.ReasonNoLeader: 3}},
		"FreeAllTheTime":    {time.Hour, map[job.Reason]int{job.ReasonNoLeader: 6}},
		"HandedOverAtOnce":  {time.Millisecond, map[job.Reason]int{job.ReasonUnknown: 5, job.ReasonNoLeader: 1}},
		"NobodyKnowsOfThat": {0, map[job.Reason]int{job.ReasonUnknown: 6}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ledger := jobtest.NewLedger("me")
				ledger.SetLast("flush", time.Now().Add(-time.Minute))
				since := time.Time{}
				if c.free > 0 {
					since = time.Now().Add(-c.free)
				}
				n := leadSince(t, ledger, "me", job.Workload{Jobs: []job.Job{every(t, "flush", "10s", nothing)}}, nil, since)
				after(5 * time.Second)
				n.end()
				want(t, "missed", n.misses(), c.missed)
				last, slots := time.Now().Add(-65*time.Second), 0
				for _, m := range ledger.Missed() {
					want(t, "the slot before", m.After.Equal(last), true)
					last, slots = m.Slot, slots+m.Count
				}
				want(t, "in the history", slots, 6)
			})
		})
	}
}

// Slots that waited under a live leader were not missed because of a missing leader. Neither this leader nor the next leader reports
// them so.
func TestWhatWaitedUnderALeaderIsNotMissedForWantOfOne(t *testing.T) {
	for _, catchUp := range []plan.CatchUp{plan.CatchUpNone, plan.CatchUpLatest, plan.CatchUpAll} {
		t.Run("ForRoom/"+string(catchUp), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ledger := jobtest.NewLedger("first")
				waits := with(every(t, "flush", "20s", nothing), func(j *job.Job) {
					j.CatchUp, j.StartingDeadline = catchUp,
						25*time.Second
				})
				w := limited(1, every(t, "long", "18s", takes(10*time.Minute)), waits)
				first := leadAs(t, ledger, "first", w, nil)
				after(150 * time.Second)
				first.end()
				want(t, "under the first leader", first.misses(), map[job.Reason]int{job.ReasonOverlap: 7, job.ReasonConcurrency: 6})
				ledger.SetOwner("second")
				after(20 * time.Second) // no node leads at 160
				second := leadSince(t, ledger, "second", w, nil, time.Now().Add(-20*time.Second))
				after(time.Second)
				second.end()
				told := second.misses()
				// These are long at 162, and perhaps flush at 160.
				want(t, "for want of a leader, under the second", told[job.ReasonNoLeader] <= 2, true)
				want(t, "for a reason that nobody knows", told[job.ReasonUnknown], 1) // flush at 140
			})
		})
	}
	t.Run("ForItsTurn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(5 * time.Second)
			ledger := jobtest.NewLedger("me")
			ledger.SetLast("flush", time.Now().Add(-40*time.Second))
			j := with(catchingAllUp(t, "10s", takes(20*time.Second)), func(j *job.Job) { j.StartingDeadline = 25 * time.Second })
			n := lead(t, ledger, j)
			after(36 * time.Second)
			n.end()
			want(t, "starts", n.starts("flush"), []float64{-25, -5})
			want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonNoLeader: 1, job.ReasonOverlap: 2}) // -35; -15 and 5
		})
	})
}
