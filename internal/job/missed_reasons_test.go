package job_test

import (
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/job"
	"baton/internal/job/jobtest"
)

// What waits while the ledger is away is recorded together where it belongs together: the
// history has why each slot was missed.
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
