package job_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/plan"
)

// cluster holds three nodes that share a ledger, and the runs that they started.
type cluster struct {
	t       *testing.T
	ledger  *jobtest.Ledger
	jobs    []job.Job
	runners []*job.Runner
	terms   int

	mu     sync.Mutex
	starts map[string]int // by job and slot
	total  int
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, ledger: jobtest.NewLedger(""), starts: map[string]int{}}
	ids := 0
	newID := func() (string, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		ids++
		return fmt.Sprint(ids), nil
	}
	for range 3 {
		c.runners = append(c.runners, job.NewRunner(c.ledger, newID, job.Config{ClaimTimeout: 300 * time.Millisecond,
			OnStart: c.noteStart}))
	}
	c.jobs = []job.Job{
		every(t, "quick", "1s", takes(200*time.Millisecond)),
		every(t, "long", "2s", takes(3*time.Second)),
		every(t, "rare", "13s", nothing),
	}
	c.jobs[0].CatchUp, c.jobs[2].CatchUp = plan.CatchUpLatest, plan.CatchUpLatest
	return c
}

func (c *cluster) noteStart(r job.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starts[r.Job+" "+r.Slot.Format(time.RFC3339Nano)]++
	c.total++
}

// term makes a node lead for a while. The node believes a while longer that it leads: this is the deposed leader that the ledger must
// refuse. term returns when another node may win.
func (c *cluster) term(all *sync.WaitGroup, node int, leads, believes time.Duration) {
	c.terms++
	owner := fmt.Sprint("owner-", c.terms)
	term := job.Term{NodeID: fmt.Sprint("node-", node), Owner: owner, Epoch: int64(c.terms)}
	ctx, cancel := context.WithTimeout(context.Background(), leads+believes)
	c.ledger.SetOwner(owner)
	all.Go(func() {
		defer cancel()
		_ = c.runners[node].Run(ctx, term, job.Workload{Jobs: c.jobs}) // the error may be that the node was deposed
	})
	time.Sleep(leads)
	c.ledger.SetOwner("")
}

// No slot is started twice, with random terms of three nodes, random times of belief in a lost leadership, and a ledger that is slow,
// unreachable, or loses its answers.
func TestSlotStartsAtMostOnceOverAllNodes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type turn struct{ Node, Leads, Believes, Gap int }
		turns := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) turn {
			return turn{
				Node:  rapid.IntRange(0, 2).Draw(rt, "node"),
				Leads: rapid.IntRange(1, 6000).Draw(rt, "leads ms"), Believes: rapid.IntRange(0, 3000).Draw(rt, "believes ms"),
				Gap: rapid.IntRange(0, 1500).Draw(rt, "gap ms"),
			}
		}), 1, 12).Draw(rt, "turns")
		faults := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) jobtest.Fault {
			return jobtest.Fault{
				Delay: time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 100, 299, 301, 900, 2500}).Draw(rt,
					"delay ms")) * time.Millisecond,
				Lost:      rapid.IntRange(0, 9).Draw(rt, "lost") == 0,
				ReplyLost: rapid.IntRange(0, 9).Draw(rt, "reply lost") == 0,
			}
		}), 1, 40).Draw(rt, "faults")
		forgetful := rapid.Bool().Draw(rt, "forgetful")

		rapid.SyncTest(rt, func(rt *rapid.T) {
			c := newCluster(t)
			c.ledger.Forgetful = forgetful
			calls := 0
			c.ledger.Disturb = func(jobtest.Op, job.Run) jobtest.Fault {
				c.mu.Lock()
				defer c.mu.Unlock()
				calls++
				return faults[calls%len(faults)]
			}
			var all sync.WaitGroup
			for _, turn := range turns {
				c.term(&all, turn.Node, ms(turn.Leads), ms(turn.Believes))
				time.Sleep(ms(turn.Gap))
			}
			all.Wait()
			for slot, n := range c.starts {
				if n > 1 {
					rt.Errorf("%s was started %d times", slot, n)
				}
			}
		})
	})
}

// Without faults every slot of the time in which a node led is started. This shows that the property above does not hold only because
// there are no starts.
func TestFailoverLosesNoSlotThatIsCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var all sync.WaitGroup
		for turn := range 20 {
			c.term(&all, turn%3, 2500*time.Millisecond, 400*time.Millisecond)
			time.Sleep(300 * time.Millisecond)
		}
		all.Wait()
		began := time.Now().Add(-20 * 2800 * time.Millisecond)
		for at := began.Add(2 * time.Second); at.Before(time.Now().Add(-time.Second)); at = at.Add(time.Second) {
			if n := c.starts["quick "+at.UTC().Format(time.RFC3339Nano)]; n != 1 {
				t.Errorf("slot %v of the quick job was started %d times", at.Sub(began), n)
			}
		}
	})
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
