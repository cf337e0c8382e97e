package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/daemon/work"
	"baton/internal/elector"
	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/schedule"
	"baton/internal/redislock"
)

// The balancer sees the state of an election that Redis contains.
func TestTheBalancerSeesWhatKeepsALockWhereItIs(t *testing.T) {
	coolDowns := map[string]redislock.CoolDown{"b": {Left: time.Minute}}
	for name, c := range map[string]struct {
		disturb func(p *redislock.ElectionState)
		barred  bool
		nodes   int
		cooling bool
	}{
		"nothing":                {func(*redislock.ElectionState) {}, false, 2, false},
		"b stands aside":         {func(p *redislock.ElectionState) { p.CoolDowns = coolDowns }, false, 2, true},
		"the lock is paused":     {func(p *redislock.ElectionState) { p.Paused = &redislock.Pause{} }, true, 2, false},
		"in quarantine":          {func(p *redislock.ElectionState) { p.Quarantine = time.Second }, true, 2, false},
		"ordered to step down":   {func(p *redislock.ElectionState) { p.StepDown = "drill" }, true, 2, false},
		"kept for another":       {func(p *redislock.ElectionState) { p.Owner, p.ReservedFor = "", "b" }, true, 2, false},
		"was kept for the owner": {func(p *redislock.ElectionState) { p.ReservedFor = "a" }, false, 2, false},
		"b never leads":          {func(p *redislock.ElectionState) { p.Nodes[1].Observer = true }, false, 1, false},
		"b is gone":              {func(p *redislock.ElectionState) { p.Nodes[1].SeenMS -= redislock.GoneAfter.Milliseconds() + 1 }, false, 1, false},
	} {
		now := time.UnixMilli(1_800_000_000_000)
		p := redislock.ElectionState{Now: now, Owner: "owner", Leader: "a", TTL: time.Second}
		for _, id := range []string{"a", "b"} {
			told := redislock.NodeInfo{Priority: 3, ConfigHash: "x", Reluctant: true}
			p.Nodes = append(p.Nodes, redislock.Node{ID: id, SeenMS: now.UnixMilli(), NodeInfo: told})
		}
		c.disturb(&p)
		e := electionIn(p)
		told := e.Leader == "a" && e.Lease == time.Second && e.Now.Equal(now)
		if e.Barred != c.barred || e.Free != (p.Owner == "") || !told || len(e.Nodes) != c.nodes {
			t.Errorf("%s: %+v", name, e)
			continue
		}
		if n := e.Nodes[c.nodes-1]; n.Priority != 3 || n.Config != "x" || !n.Reluctant || !n.Seen.Equal(now) || n.CoolingDown != c.cooling {
			t.Errorf("%s: %+v", name, n)
		}
	}
}

// A handover takes a moment, and would delay a run that is about to begin.
func TestALockIsNotHandedOverRightBeforeARun(t *testing.T) {
	task := func(name, when string) work.Task {
		s, err := schedule.Parse(when, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		return work.Task{Task: tasks.Task{Config: config.Job{Name: name}, Schedule: s}}
	}
	jobs := []work.Task{task("report", "@hourly"), task("clean", "@hourly"), task("flush", "@always")}
	now := time.UnixMilli(1_800_000_000_000)
	for name, c := range map[string]struct {
		next    map[string]time.Duration
		running string
		idle    bool
	}{
		"nothing is known":                 {nil, "", true},
		"all are far off":                  {map[string]time.Duration{"report": time.Hour, "clean": aboutToBegin}, "", true},
		"one begins before it is read":     {map[string]time.Duration{"report": time.Hour, "clean": aboutToBegin - 1}, "", false},
		"one is due":                       {map[string]time.Duration{"report": 0}, "", false},
		"one is late":                      {map[string]time.Duration{"report": -time.Second}, "", false},
		"one runs":                         {nil, "clean", false},
		"one that goes on all the time":    {map[string]time.Duration{"flush": 0}, "flush", true},
		"one runs that is not known":       {nil, "gone", false},
		"one is due, and another one runs": {map[string]time.Duration{"report": 0}, "flush", false},
	} {
		next := func(job string) (time.Time, bool) { d, ok := c.next[job]; return now.Add(d), ok }
		var open []string
		if c.running != "" {
			open = []string{c.running}
		}
		if got := isIdle(jobs, next, open, now); got != c.idle {
			t.Errorf("%s: idle is %v, want %v", name, got, c.idle)
		}
	}
}

// Redis may refuse every order, for example because it is full. Then runs go on.
func TestARefusedOrderToHandOverHoldsNoRunBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := job.NewRunner(jobtest.NewLedger("me"), func() (string, error) { return "", nil }, job.Config{})
		full := fmt.Errorf("ask the leader to step down: %w", redis.Error("EXECABORT Transaction discarded because of: OOM"))
		for name, c := range map[string]struct {
			err   error
			holds bool
		}{
			"stored":                 {nil, true},
			"an unknown outcome":     {context.DeadlineExceeded, true},
			"refused by Redis":       {full, false},
			"nobody leads":           {redislock.ErrNoLeader, false},
			"refused by the program": {fmt.Errorf("%w: conflict", elector.ErrRefused), false},
		} {
			err := orderIfIdle(r, nil, time.Second, func() (bool, error) { return !isRefused(c.err), c.err })
			if !errors.Is(err, c.err) || r.HoldsStarts() != c.holds {
				t.Errorf("%s: %v, runs are held back: %v", name, err, r.HoldsStarts())
			}
			time.Sleep(time.Second)
		}
	})
}

// A leader may obey the order much later than it was given, if its machine is busy. A run that began meanwhile would be cut off.
func TestNoRunBeginsAfterTheOrderToHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := schedule.Parse("@every 2s", time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		var runs atomic.Int64
		report := job.Job{Name: "report", Schedule: s, Run: func(context.Context, job.Run) (job.Result, error) { runs.Add(1); return job.Result{}, nil }}
		jobs := []work.Task{{Task: tasks.Task{Config: config.Job{Name: "report"}, Schedule: s}}}
		r := job.NewRunner(jobtest.NewLedger("me"), func() (string, error) { return time.Now().String(), nil }, job.Config{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx, job.Term{Owner: "me"}, job.Workload{Jobs: []job.Job{report}}) }()
		time.Sleep(3 * time.Second)
		before, late := runs.Load(), errors.New("the answer of Redis does not come")
		err = orderIfIdle(r, jobs, 10*time.Second, func() (bool, error) { time.Sleep(6500 * time.Millisecond); return true, late })
		if !errors.Is(err, late) || before != 1 || runs.Load() != before {
			t.Errorf("%v after %d runs before the order and %d during it", err, before, runs.Load()-before)
		}
		again := func() (bool, error) { t.Error("ordered while a run was due"); return true, nil }
		if err := orderIfIdle(r, jobs, time.Hour, again); err == nil {
			t.Error("a run that is due is not told")
		}
		time.Sleep(3 * time.Second) // 12.5
		if n := runs.Load(); n != before {
			t.Errorf("%d runs began while the first order could be obeyed", n-before)
		}
		time.Sleep(time.Second) // 13.5: the hold is over
		if runs.Load() == before {
			t.Error("the run that was due does not begin after the hold")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
