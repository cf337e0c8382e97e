package job_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/plan"
)

// chaos holds a few nodes that share a ledger, and the faults of these nodes. Set BATON_JOB_CHAOS to the number of worlds to try, or to
// "seed=N" to repeat one world.
type chaos struct {
	t      *testing.T
	dice   *rand.Rand
	ledger *jobtest.Ledger
	jobs   []job.Job
	nodes  [3]*job.Runner
	clocks [3]*wall
	begin  time.Time

	mu      sync.Mutex
	faulty  bool
	calm    bool
	ids     int
	terms   int
	starts  map[string]int    // by job, slot and attempt
	slots   map[string]bool   // by job and slot
	running map[string]int    // by job and term
	overlap map[string]string // the overlaps that were found
	given   map[string]bool   // jobs whose waiting runs an operator has cancelled
}

func TestEverySlotIsAccountedForWhateverHappens(t *testing.T) {
	first, worlds := rand.Uint64N(1<<32), uint64(1)
	switch asked := os.Getenv("BATON_JOB_CHAOS"); {
	case len(asked) > 5 && asked[:5] == "seed=":
		worlds = 1
		first, _ = strconv.ParseUint(asked[5:], 10, 64)
	case asked != "":
		worlds, _ = strconv.ParseUint(asked, 10, 64)
	}
	for seed := first; seed < first+worlds && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newChaos(t, seed).play() })
		})
	}
}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{
		t: t, dice: rand.New(rand.NewPCG(seed, 1)), ledger: jobtest.NewLedger(""), begin: time.Now(),
		starts: map[string]int{}, slots: map[string]bool{}, running: map[string]int{}, overlap: map[string]string{},
		given: map[string]bool{},
	}
	c.ledger.Disturb = c.disturb
	c.ledger.Forgetful = seed%2 == 0
	for i := range c.nodes {
		c.clocks[i] = &wall{}
		c.nodes[i] = job.NewRunner(c.ledger, c.newID, job.Config{Clock: c.clocks[i].now})
	}
	for _, how := range []plan.Overlap{plan.OverlapForbid, plan.OverlapQueueOne, plan.OverlapReplace, plan.OverlapAllow} {
		for _, up := range []plan.CatchUp{plan.CatchUpNone, plan.CatchUpLatest, plan.CatchUpAll} {
			for k, interval := range []string{"7s", "1m"} {
				j := every(t, fmt.Sprint(how, "-", up, "-", interval), interval, c.work)
				j.Overlap, j.CatchUp, j.MayIdle = how, up, k == 0
				if k == 0 && how != plan.OverlapAllow {
					j.OnLost = plan.OnLostRerun
				}
				j.Retry = plan.Retry{Limit: 2, Delay: time.Second, MaxDelay: 5 * time.Second}
				if k == 1 && how == plan.OverlapQueueOne {
					j.Jitter, j.StartingDeadline = 40*time.Second, 3*time.Minute
				}
				c.jobs = append(c.jobs, j)
				c.ledger.SetLast(j.Name, c.begin)
			}
		}
	}
	return c
}

// roll returns a random number below n. Several goroutines call it.
func (c *chaos) roll(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dice.IntN(n)
}

func (c *chaos) newID() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids++
	return fmt.Sprint(c.ids), nil
}

func (c *chaos) disturb(jobtest.Op, job.Run) jobtest.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch roll := c.dice.IntN(100); {
	case c.calm:
		return jobtest.Fault{}
	case c.faulty && roll < 70:
		return jobtest.Fault{Lost: true, Delay: time.Duration(roll%3) * time.Second}
	case c.faulty || roll < 3:
		return jobtest.Fault{ReplyLost: true, Delay: time.Duration(roll*20) * time.Millisecond}
	default:
		return jobtest.Fault{Delay: time.Duration(roll) * time.Millisecond}
	}
}

// idle reports that some jobs have nothing to do, after a random time.
func (c *chaos) idle(ctx context.Context, jobs []string) []bool {
	select {
	case <-time.After(time.Duration(c.roll(400)) * time.Millisecond):
	case <-ctx.Done():
	}
	idle := make([]bool, len(jobs))
	for i := range idle {
		idle[i] = ctx.Err() == nil && c.roll(3) > 0
	}
	return idle
}

// startKey identifies an attempt that may start at most once.
func (c *chaos) startKey(r job.Run) string {
	return fmt.Sprint(r.Job, " ", r.Slot.Sub(c.begin), " attempt ", r.Attempt, " ", r.Trigger == job.TriggerManual, r.ID[:1] == "m")
}

// work records its start, and then behaves at random.
func (c *chaos) work(ctx context.Context, r job.Run) (job.Result, error) {
	here := r.Job + " in " + r.Term.Owner
	c.mu.Lock()
	c.starts[c.startKey(r)]++
	if r.Attempt == 1 { // a retry was lost, and may be reported as missed because it was not known
		c.slots[slotKey(r.Job, r.Slot, c.begin)] = true
	}
	c.running[here]++
	if c.running[here] > 1 && r.Job[:5] != "allow" {
		c.overlap[here] = fmt.Sprint(r.Slot.Sub(c.begin), " ", r.Trigger)
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running[here]--
	}()
	switch roll := c.roll(20); {
	case roll < 9:
		return job.Result{}, nil
	case roll < 12:
		return job.Result{}, errors.New("bad luck")
	case roll == 12:
		panic("worse luck")
	default:
		return takes(time.Duration(roll-12)*2*time.Second)(ctx, r)
	}
}

func slotKey(name string, slot, begin time.Time) string {
	return fmt.Sprint(name, " ", slot.Sub(begin))
}

// play simulates an hour or two.
func (c *chaos) play() {
	var all sync.WaitGroup
	for range 25 {
		c.term(&all)
		time.Sleep(time.Duration(c.roll(90)) * time.Second / time.Duration(1+c.roll(30)))
	}
	all.Wait()
	c.settleDown()
	c.judge()
}

// term makes a node lead for a while. The node believes a little longer that it leads.
func (c *chaos) term(all *sync.WaitGroup) {
	i := c.roll(len(c.nodes))
	c.terms++
	owner := fmt.Sprint("owner-", c.terms)
	ctx, stop := context.WithCancelCause(context.Background())
	c.ledger.SetOwner(owner)
	ended := make(chan struct{})
	w := job.Workload{Jobs: c.jobs, MaxConcurrent: c.roll(2) * 15, Idle: c.idle}
	all.Go(func() {
		defer close(ended)
		_ = c.nodes[i].Run(ctx, job.Term{NodeID: fmt.Sprint("node-", i), Owner: owner, Epoch: int64(c.terms)}, w)
	})
	for range c.roll(12) {
		time.Sleep(time.Duration(1+c.roll(300)) * 100 * time.Millisecond)
		c.befall(i, w)
	}
	c.mu.Lock()
	c.faulty = c.dice.IntN(4) == 0
	c.mu.Unlock()
	if c.roll(2) == 0 {
		c.ledger.SetOwner("") // the lease of the node has run out
		time.Sleep(time.Duration(c.roll(5000)) * time.Millisecond)
	}
	stop(errSteppedDown)
	<-ended
	c.ledger.SetOwner("")
}

// befall makes something happen to the leader.
func (c *chaos) befall(i int, w job.Workload) {
	j := c.jobs[c.roll(len(c.jobs))]
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	switch c.roll(8) {
	case 0, 1:
		c.mu.Lock()
		c.faulty = !c.faulty
		c.mu.Unlock()
	case 2:
		c.clocks[i].set([]time.Duration{0, 2 * time.Hour, -2 * time.Hour, 20 * time.Second, 0}[c.roll(5)])
	case 3:
		c.clocks[i].set(0)
	case 4:
		c.given[j.Name] = true
		_, _ = c.nodes[i].Cancel(ctx, j.Name, "", "by chance")
	case 5:
		w.MaxConcurrent = c.roll(3) * 10
		_ = c.nodes[i].Update(ctx, w)
	case 6:
		id := fmt.Sprint("m", c.roll(1_000_000_000))
		c.ledger.Ask(j.Name, id)
		_ = c.nodes[i].RunNow(ctx, job.Manual{Job: j.Name, ID: id})
	}
}

// settleDown leaves the lock free for a while, and then lets a healthy node lead for a moment.
func (c *chaos) settleDown() {
	c.mu.Lock()
	c.calm = true
	c.mu.Unlock()
	c.clocks[0].set(0)
	time.Sleep(3 * time.Minute)
	time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 4*time.Second)))
	c.ledger.SetOwner("last")
	ctx, stop := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer stop()
	_ = c.nodes[0].Run(ctx, job.Term{NodeID: "node-0", Owner: "last"}, job.Workload{Jobs: c.jobs})
}

func (c *chaos) judge() {
	idle := c.ledger.Idle()
	for _, rec := range idle {
		c.starts[c.startKey(rec.Run)]++
		c.slots[slotKey(rec.Job, rec.Slot, c.begin)] = true
	}
	for what, n := range c.starts {
		if n > 1 {
			c.t.Errorf("%s was started %d times", what, n)
		}
	}
	for where, what := range c.overlap {
		c.t.Errorf("%s: two runs at a time: %s", where, what)
	}
	claimed, missed := map[string]bool{}, map[string]job.Reason{}
	for _, r := range c.ledger.Granted() {
		claimed[slotKey(r.Job, r.Slot, c.begin)] = true
	}
	for _, m := range c.ledger.Missed() {
		c.slotsOf(m, func(key string) {
			missed[key] = m.Reason
			if c.slots[key] {
				c.t.Errorf("%s was started, and is told as missed: %s", key, m.Reason)
			}
		})
	}
	started := 0
	for _, j := range c.jobs {
		standings, err := c.ledger.ResumeStates(context.Background(), []string{j.Name})
		if err != nil {
			c.t.Fatal(err)
		}
		last := standings[j.Name].Last
		for at := j.Schedule.Next(c.begin); !at.After(last); at = j.Schedule.Next(at) {
			key := slotKey(j.Name, at, c.begin)
			if !claimed[key] && missed[key] == "" {
				c.t.Errorf("%s is not accounted for", key)
			}
			if why := missed[key]; j.CatchUp == plan.CatchUpAll && j.StartingDeadline == 0 && !c.given[j.Name] &&
				(why == job.ReasonLate || why == job.ReasonNoLeader || why == job.ReasonUnknown) {
				c.t.Errorf("%s was not caught up on: %s", key, why)
			}
			if c.slots[key] {
				started++
			}
		}
		now := time.Now().Add(-j.Offset())
		passed := j.Schedule.Next(now.Add(-time.Minute))
		for next := j.Schedule.Next(passed); !next.After(now); next = j.Schedule.Next(passed) {
			passed = next
		}
		if key := slotKey(j.Name, passed, c.begin); j.CatchUp == plan.CatchUpLatest && !claimed[key] {
			c.t.Errorf("%s is the latest, and was not run", key)
		}
	}
	if len(idle) < 20 {
		c.t.Errorf("only %d runs had nothing to do", len(idle))
	}
	if started < 100 {
		c.t.Errorf("only %d slots were started", started)
	}
	c.t.Logf("%d slots started in %v, of which %d had nothing to do", started, time.Since(c.begin), len(idle))
}

func (c *chaos) slotsOf(m job.Missed, each func(key string)) {
	for _, j := range c.jobs {
		if j.Name != m.Job || m.Count == 0 {
			continue
		}
		for at := m.First; !at.IsZero() && !at.After(m.Slot); at = j.Schedule.Next(at) {
			each(slotKey(j.Name, at, c.begin))
		}
	}
}
