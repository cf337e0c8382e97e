package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"

	"github.com/gomodule/redigo/redis"
)

// controlled is an election with two nodes, in one of the designs.
type controlled struct {
	*redislock.Election
	t    *testing.T
	conn redis.Conn
	a, b *redislock.Lock
}

func eachDesign(t *testing.T, test func(controlled)) {
	for name, design := range designs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			s := open(t, r)
			node := func(id string) *redislock.Lock {
				o := design
				o.Key, o.TTL, o.NodeID = "baton", 5*time.Second, id
				return designedLock(t, s, o)
			}
			test(controlled{redislock.NewElection(s, "baton", design.Format), t, r.Conn(), node("a"), node("b")})
		})
	}
}

func (c controlled) acquire(lock *redislock.Lock, owner string, want elector.Outcome) elector.Answer {
	c.t.Helper()
	a, err := lock.Acquire(c.t.Context(), elector.Candidate{Owner: owner})
	if err != nil || a.Outcome != want {
		c.t.Fatalf("acquire for %s: %+v, %v; want outcome %v", owner, a, err, want)
	}
	return a
}

func (c controlled) state() redislock.ElectionState {
	c.t.Helper()
	p, err := c.State(c.t.Context(), 20)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// history returns the kinds of the events with their reasons, the latest event first.
func (c controlled) history() (texts []string) {
	for _, e := range c.state().Events {
		texts = append(texts, strings.TrimSpace(e.Event+" "+e.Reason))
	}
	return texts
}

func TestAPauseEndsTheTermAndKeepsEverybodyOut(t *testing.T) {
	t.Parallel()
	eachDesign(t, func(c controlled) {
		t, ctx := c.t, c.t.Context()
		won := c.acquire(c.a, "o1", elector.Won)
		if before, err := c.Pause(ctx, "by alice: upgrade"); err != nil || before != nil {
			t.Fatalf("pause: %+v, %v", before, err)
		}
		order, err := c.a.Renew(ctx, "o1", won.Epoch)
		if err != nil || !order.StepDown || order.Code != elector.CodePaused || order.Reason != "paused by alice: upgrade" {
			t.Errorf("the leader is ordered %+v, %v", order, err)
		}
		if err := c.a.Release(ctx, "o1", elector.Handover{Event: "stepped_down", Reason: order.Reason}); err != nil {
			t.Fatal(err)
		}
		for _, lock := range []*redislock.Lock{c.a, c.b} {
			if a := c.acquire(lock, "o2", elector.Wait); a.Code != elector.CodePaused || a.Reason != "paused by alice: upgrade" {
				t.Errorf("waits for %q", a.Reason)
			}
		}
		p := c.state()
		if p.Paused == nil || p.Paused.Reason != "by alice: upgrade" || p.Now.Sub(p.Paused.At).Abs() > time.Minute || p.Owner != "" {
			t.Errorf("picture %+v", p)
		}

		again, err := c.Pause(ctx, "by bob: still at it")
		if err != nil || again == nil || *again != *p.Paused {
			t.Errorf("paused again: %+v, %v; want the first pause", again, err)
		}
		if q := c.state(); q.Paused == nil || q.Paused.At != p.Paused.At || q.Paused.Reason != "by bob: still at it" {
			t.Errorf("after that: %+v; want the first time and the second reason", q.Paused)
		}

		was, err := c.Resume(ctx, "by bob")
		if err != nil || was == nil || was.Reason != "by bob: still at it" {
			t.Errorf("resume: %+v, %v", was, err)
		}
		if was, err := c.Resume(ctx, "by carol"); err != nil || was != nil {
			t.Errorf("resumed twice: %+v, %v", was, err)
		}
		c.acquire(c.b, "o3", elector.Won)
		want := []string{"won", "resumed by bob", "paused by bob: still at it", "stepped_down paused by alice: upgrade",
			"paused by alice: upgrade", "won"}
		if got := c.history(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("history %q, want %q", got, want)
		}
	})
}

// A node must learn of an operator's order without waiting for a poll.
func TestOperatorsWakeThoseWhomItConcerns(t *testing.T) {
	r := testsupport.StartRedis(t)
	s := open(t, r)
	e := redislock.NewElection(s, "baton", script.String)
	hints := make(chan elector.Hint, 8)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		redislock.WatchAll(ctx, s, redislock.Watched{LockKey: "baton", Hints: hints})
	}()
	defer func() { cancel(); <-done }()
	await := func(want elector.Hint) {
		t.Helper()
		select {
		case h := <-hints:
			if h != want {
				t.Errorf("hint %v, want %v", h, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("hint %v has not come", want)
		}
	}
	await(elector.HintSubscribed)
	if _, err := e.Pause(ctx, "by alice"); err != nil {
		t.Fatal(err)
	}
	await(elector.HintControl)
	if _, err := e.Resume(ctx, "by alice"); err != nil {
		t.Fatal(err)
	}
	await(elector.HintReleased)
}

func TestAStepDownIsAskedOfTheTermThatLeads(t *testing.T) {
	t.Parallel()
	eachDesign(t, func(c controlled) {
		t, ctx := c.t, c.t.Context()
		won := c.acquire(c.a, "o1", elector.Won)
		owner, node, err := c.StepDown(ctx, "b", "by alice")
		if err != nil || owner != "o1" || node != "a" {
			t.Fatalf("asked %q on %q, %v", owner, node, err)
		}
		if p := c.state(); p.StepDown != "by alice" {
			t.Errorf("picture %+v", p.Control)
		}
		if order, err := c.a.Renew(ctx, "o1", won.Epoch); err != nil || !order.StepDown || order.To != "b" {
			t.Errorf("order %+v, %v", order, err)
		}
		if err := c.a.Release(ctx, "o1", elector.Handover{Event: "stepped_down", To: "b"}); err != nil {
			t.Fatal(err)
		}
		if p := c.state(); p.StepDown != "" || p.ReservedFor != "b" || p.ReservedLeft <= 0 || p.ReservedLeft > elector.ReserveFor {
			t.Errorf("after the release: %+v", p.Control)
		}
		won = c.acquire(c.b, "o2", elector.Won)
		if p := c.state(); p.ReservedFor != "" {
			t.Errorf("after the takeover: %+v", p.Control)
		}
		// An order to the previous term comes too late.
		if err := c.StepDownOwner(ctx, "o1", elector.Order{Reason: "by alice"}); !errors.Is(err, redislock.ErrNoLeader) {
			t.Errorf("a late order: %v", err)
		}
		if order, err := c.b.Renew(ctx, "o2", won.Epoch); err != nil || order.StepDown {
			t.Errorf("a late order is obeyed: %+v, %v", order, err)
		}
		sent := elector.Order{To: "a", Reason: "b leads 2 of 2 locks", Code: elector.CodeBalance}
		if err := c.StepDownOwner(ctx, "o2", sent); err != nil {
			t.Error(err)
		}
		order, err := c.b.Renew(ctx, "o2", won.Epoch)
		want := elector.Order{StepDown: true, To: "a", Reason: "b leads 2 of 2 locks", Code: elector.CodeBalance}
		if err != nil || order != want {
			t.Errorf("order %+v, %v", order, err)
		}
		handover := elector.Handover{Event: "stepped_down", Reason: order.Reason, Code: order.Code, To: order.To}
		if err := c.b.Release(ctx, "o2", handover); err != nil {
			t.Fatal(err)
		}
		p, err := c.State(ctx, 1)
		if err != nil || len(p.Events) != 1 || p.Events[0].Code != elector.CodeBalance || p.Events[0].Reason != "b leads 2 of 2 locks" {
			t.Errorf("events %+v, %v", p.Events, err)
		}
		if a := c.acquire(c.b, "o3", elector.Wait); a.Code != elector.CodeReserved || a.Reason != "reserved for a" {
			t.Errorf("waits for %q: %q", a.Code, a.Reason)
		}
	})
}

func TestAForeignClientIsAskedToStepDownByItsOwner(t *testing.T) {
	r := testsupport.StartRedis(t)
	e := redislock.NewElection(open(t, r), "baton", script.String)
	r.Client(t).Do("SET", "baton", "java")
	if owner, node, err := e.StepDown(t.Context(), "", ""); err != nil || owner != "java" || node != "" {
		t.Errorf("asked %q on %q, %v", owner, node, err)
	}
}

func TestANodeThatStandsAsideIsSeenUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	eachDesign(t, func(c controlled) {
		t, ctx := c.t, c.t.Context()
		for node, d := range map[string]time.Duration{"a": time.Minute, "b": 30 * time.Millisecond, "c": time.Minute} {
			if err := c.SetCoolDown(ctx, node, d, `database "main" is away`); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.SetCoolDown(ctx, "c", 0, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		coolDowns := c.state().CoolDowns
		if a := coolDowns["a"]; len(coolDowns) != 1 || a.Reason != `database "main" is away` ||
			a.Left <= 50*time.Second || a.Left > time.Minute {
			t.Errorf("cool-downs %+v, want a alone", coolDowns)
		}
		c.acquire(c.a, "o1", elector.Won) // the record of the cool-down does not keep the node from winning
	})
}

func TestAQuarantineIsInTheState(t *testing.T) {
	t.Parallel()
	eachDesign(t, func(c controlled) {
		a, err := c.a.Acquire(c.t.Context(), elector.Candidate{Owner: "o1", Floor: 7})
		if err != nil || a.Outcome != elector.Wait {
			c.t.Fatalf("%+v, %v", a, err)
		}
		if p := c.state(); p.Quarantine <= 0 || p.Quarantine > 5*time.Second {
			c.t.Errorf("quarantine %v, want at most the lease", p.Quarantine)
		}
	})
}

func TestForgettingANodeForgetsItsPriorityAndWhyItStoodAside(t *testing.T) {
	t.Parallel()
	eachDesign(t, func(c controlled) {
		t, ctx := c.t, c.t.Context()
		if err := c.SetCoolDown(ctx, "a", time.Minute, "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.conn.Do("HSET", "{baton}:control", "priority:a", "5 1", "priority:b", "6 1"); err != nil {
			t.Fatal(err)
		}
		if err := c.Forget(ctx, []redislock.Node{{ID: "a", SeenMS: 1}}, time.Now()); err != nil {
			t.Fatal(err)
		}
		if left, err := redis.Strings(c.conn.Do("HKEYS", "{baton}:control")); err != nil || len(left) != 1 || left[0] != "priority:b" {
			t.Errorf("left %q, %v", left, err)
		}
	})
}
