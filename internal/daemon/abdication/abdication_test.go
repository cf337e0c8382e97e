package abdication

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"baton/internal/daemon/site"
	"baton/internal/elector"
	"baton/internal/redislock"
)

// distant is a database that a test can make unreachable.
type distant struct {
	mu   sync.Mutex
	away bool
	hang bool
}

func (d *distant) set(away, hang bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away, d.hang = away, hang
}

func (d *distant) Ping(ctx context.Context) error {
	d.mu.Lock()
	away, hang := d.away, d.hang
	d.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if away {
		return errors.New("connection refused")
	}
	return nil
}

// drawn is an election whose state a test sets.
type drawn struct {
	site.Election
	mu        sync.Mutex
	state     redislock.ElectionState
	coolDowns []time.Duration // the cool-downs that this node has recorded
}

func (d *drawn) State(context.Context, int) (redislock.ElectionState, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.state
	p.Now = time.Now()
	p.Nodes = slices.Clone(p.Nodes)
	for i := range p.Nodes {
		if p.Nodes[i].SeenMS == 0 {
			p.Nodes[i].SeenMS = p.Now.UnixMilli()
		}
	}
	return p, nil
}

func (d *drawn) SetCoolDown(_ context.Context, _ string, cool time.Duration, _ string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.coolDowns = append(d.coolDowns, cool)
	return nil
}

// noted returns the cool-down that this node has recorded last.
func (d *drawn) noted() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.coolDowns[len(d.coolDowns)-1]
}

func (d *drawn) draw(change func(*redislock.ElectionState)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.state)
}

// resigner returns the abdicator of node a, which has a live companion b, and its database main.
func resigner(t *testing.T) (*Abdicator, *drawn, *distant) {
	t.Helper()
	e := &drawn{state: redislock.ElectionState{Nodes: []redislock.Node{{ID: "a"}, {ID: "b"}}}}
	db := &distant{}
	return &Abdicator{
		nodeID: "a", after: 30 * time.Second, poll: 2 * time.Second, databases: map[string]pinger{"main": db, "other": &distant{}},
		election: e, coolDown: &CoolDown{}, log: zap.NewNop(), abdications: make(chan abdicated, 1),
	}, e, db
}

// abdicates runs one term for at most d of bubble time.
func abdicates(t *testing.T, a *Abdicator, d time.Duration) (*elector.Abdication, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	began := time.Now()
	return a.Watch(ctx), time.Since(began)
}

func TestALeaderWithoutItsDatabaseLetsAnotherTry(t *testing.T) {
	for name, hang := range map[string]bool{"refuses": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, e, db := resigner(t)
				if got, _ := abdicates(t, a, time.Hour); got != nil {
					t.Fatalf("abdicated with its databases there: %v", got)
				}
				db.set(true, hang)
				got, after := abdicates(t, a, time.Hour)
				if got == nil || after < a.after || after > a.after+2*a.pace() {
					t.Fatalf("abdicated %v after %v, want it after %v", got, after, a.after)
				}
				if got.CoolDown != untilCalled || !strings.HasPrefix(got.Reason, `database "main" has not answered here for 3`) {
					t.Errorf("%+v", got)
				}
				if !slices.Equal(e.coolDowns, []time.Duration{a.after}) || !strings.Contains(a.coolDown.Reason(), got.Reason) {
					t.Errorf("noted %v, tells %q", e.coolDowns, a.coolDown.Reason())
				}
			})
		})
	}
}

func TestADatabaseThatAnswersNowAndThenIsNotAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, db := resigner(t)
		stop := make(chan struct{})
		go func() {
			for away := true; ; away = !away {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Second):
					db.set(away, false)
				}
			}
		}()
		if got, after := abdicates(t, a, time.Hour); got != nil {
			t.Errorf("abdicated after %v: %v", after, got)
		}
		close(stop)
	})
}

func TestALeaderWithoutItsDatabaseGoesOnWhereNobodyElseCouldLead(t *testing.T) {
	others := map[string]func(p *redislock.ElectionState){
		"no other node": func(p *redislock.ElectionState) { p.Nodes = p.Nodes[:1] },
		"an observer":   func(p *redislock.ElectionState) { p.Nodes[1].Observer = true },
		"one long gone": func(p *redislock.ElectionState) { p.Nodes[1].SeenMS = 1 },
		"one that was it": func(p *redislock.ElectionState) {
			p.CoolDowns = map[string]redislock.CoolDown{"b": {Left: time.Second}}
		},
		"a foreign reader": func(p *redislock.ElectionState) { p.Nodes = nil },
	}
	for name, change := range others {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, e, db := resigner(t)
				db.set(true, false)
				e.draw(change)
				if got, after := abdicates(t, a, time.Hour); got != nil {
					t.Fatalf("abdicated after %v: %v", after, got)
				}
				e.draw(func(p *redislock.ElectionState) { p.CoolDowns, p.Nodes = nil, []redislock.Node{{ID: "a"}, {ID: "b"}} })
				if got, _ := abdicates(t, a, time.Hour); got == nil {
					t.Error("did not abdicate when another node was there")
				}
			})
		})
	}
}

func TestCoolDownsGrowWhileTheTroubleLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, e, db := resigner(t)
		db.set(true, false)
		var cools []time.Duration
		for range 6 {
			got, _ := abdicates(t, a, time.Hour)
			if got == nil {
				t.Fatal("did not abdicate")
			}
			cools = append(cools, a.cool)
			time.Sleep(a.cool)
		}
		want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute}
		if !slices.Equal(cools, want) {
			t.Errorf("cool-downs %v, want %v", cools, want)
		}
		if n := len(e.coolDowns); n != 11 || e.coolDowns[1] != 0 {
			t.Errorf("noted %v; want every new term to take the note back", e.coolDowns)
		}
		time.Sleep(longestCoolDown + soonAgain)
		if got, _ := abdicates(t, a, time.Hour); got == nil || a.cool != a.after {
			t.Errorf("long after: %+v, want a cool-down of %v again", got, a.after)
		}
	})
}

func TestWhoAbdicatedComesBackIfNobodyElseLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, e, db := resigner(t)
		db.set(true, false)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); a.ComeBack(ctx) }()
		var over chan struct{}
		comesBack := func(within time.Duration) bool {
			t.Helper()
			select {
			case <-over:
				return true
			case <-time.After(within):
				return false
			}
		}
		cools := func(p func(*redislock.ElectionState)) {
			e.draw(func(old *redislock.ElectionState) { *old = redislock.ElectionState{}; p(old) })
			a.coolDown.Begin(time.Minute, "x")
			over = make(chan struct{})
			select {
			case a.abdications <- abdicated{time.Minute, "x", over}:
			case <-time.After(time.Hour):
				t.Fatal("the cool-down before is not over: nothing takes another one")
			}
		}
		home := func() { // ends the goroutines that still run
			t.Helper()
			e.draw(func(p *redislock.ElectionState) { *p = redislock.ElectionState{} })
			if !comesBack(time.Minute) {
				t.Error("did not come back in the end")
			}
		}

		cools(func(*redislock.ElectionState) {})
		if began := time.Now(); !comesBack(time.Minute) || time.Since(began) != 2*a.poll {
			t.Errorf("came back after %v, want two looks", time.Since(began))
		}
		if why := a.coolDown.Reason(); why != "" {
			t.Errorf("still %q", why)
		}
		for name, p := range map[string]redislock.ElectionState{
			"another leads": {Owner: "o"},
			"paused":        {Control: redislock.Control{Paused: &redislock.Pause{}}},
			"quarantined":   {Control: redislock.Control{Quarantine: time.Second}},
		} {
			cools(func(old *redislock.ElectionState) { *old = p })
			if comesBack(2 * time.Hour) {
				t.Errorf("%s: came back", name)
			}
			if why := a.coolDown.Reason(); !strings.Contains(why, "x") || e.noted() != time.Minute {
				t.Errorf("%s: tells %q and has noted %v after two hours", name, why, e.noted())
			}
			home()
		}
		cools(func(p *redislock.ElectionState) { p.Owner = "o" })
		time.Sleep(20 * time.Second)
		e.draw(func(p *redislock.ElectionState) { p.Owner = "" }) // it has died
		if !comesBack(10 * time.Second) {
			t.Error("did not come back when the successor had died")
		}

		cools(func(p *redislock.ElectionState) { p.Owner = "o" })
		db.set(false, false)
		if began := time.Now(); comesBack(time.Minute - time.Second) {
			t.Errorf("came back after %v, before its cool-down was over", time.Since(began))
		}
		if !comesBack(2 * a.pace()) {
			t.Error("did not come back although its databases answer")
		}
		if e.noted() != 0 {
			t.Errorf("its note still says %v", e.noted())
		}
		cancel()
		<-done
	})
}
