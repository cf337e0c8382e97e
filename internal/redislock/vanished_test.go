package redislock_test

import (
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// mishap takes a lock, or what guards it, from a leader who still trusts it.
type mishap struct {
	name   string
	happen func(r *testsupport.Redis) error
}

func del(key string) func(*testsupport.Redis) error {
	return func(r *testsupport.Redis) error {
		_, err := r.Conn().Do("DEL", key)
		return err
	}
}

// leapAhead steps the server's clock, and waits until the server has seen it: Valkey 9.1 looks at the wall clock a few times a
// second, and counts from there.
func leapAhead(t *testing.T, r *testsupport.Redis) {
	t.Helper()
	c := r.Client(t)
	c.Do("SET", "leapt", 1, "EX", 1800)
	r.StepClock(time.Hour)
	testsupport.Await(t, "the server's clock leaps", func() bool { return c.Num("EXISTS", "leapt") == 0 })
}

// A lock that vanishes before its lease can have ended, by the clock of a node that
// has seen it, has been evicted or deleted, or Redis' clock has leapt. Its holder
// may trust it, so a node that knows lets one lease pass, and so do all others then.
func TestALockThatVanishesBeforeItsTimeMakesNewOwnersWait(t *testing.T) {
	t.Parallel()
	mishaps := []mishap{
		{"deleted", del("baton")},
		{"the clock leaps ahead", func(r *testsupport.Redis) error { leapAhead(t, r); return nil }},
	}
	for design, o := range designs {
		for _, m := range mishaps {
			t.Run(design+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				r := testsupport.StartRedis(t, testsupport.RedisClock())
				e := newElectorate(t, r, o, shortLease)
				won := e.ask(e.a, "o1", 0)
				e.wants(e.ask(e.b, "o2", 0), elector.Held)
				if err := m.happen(r); err != nil {
					t.Fatal(err)
				}
				vanished := time.Now()
				e.wants(e.ask(e.b, "o2", won.Epoch), elector.Wait)
				e.wants(e.ask(e.c, "o3", 0), elector.Wait) // which has seen nothing
				next := e.awaitWonIn(2*e.ttl, e.c, "o3", 0)
				if took := time.Since(vanished); took < e.ttl-tick {
					t.Errorf("won after %v; want it after one lease of %v", took, e.ttl)
				}
				if next.Epoch <= won.Epoch {
					t.Errorf("epoch %d after %d", next.Epoch, won.Epoch)
				}
			})
		}
	}
}

// The leader itself goes on, if it comes in time.
func TestTheLeaderOfAVanishedLockGoesOn(t *testing.T) {
	t.Parallel()
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			e := newElectorate(t, r, o, 5*time.Second)
			won := e.ask(e.a, "o1", 0)
			e.wants(e.ask(e.b, "o2", 0), elector.Held)
			if err := del("baton")(r); err != nil {
				t.Fatal(err)
			}
			e.wants(e.ask(e.b, "o2", won.Epoch), elector.Wait)
			if _, err := e.a.Renew(t.Context(), "o1", won.Epoch); err != nil {
				t.Fatal(err)
			}
			if held := e.ask(e.b, "o2", won.Epoch); held.Outcome != elector.Held || held.Holder != "a" || held.Epoch != won.Epoch {
				t.Errorf("after its renewal: %+v", held)
			}
			if err := e.a.Release(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil {
				t.Fatal(err)
			}
			e.wants(e.ask(e.b, "o2", won.Epoch), elector.Won)
		})
	}
}

// What ends a quarantine is time, not the loss of the key that counts it.
func TestAQuarantineOutlivesTheLossOfItsKey(t *testing.T) {
	t.Parallel()
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			e := newElectorate(t, r, o, shortLease)
			won := e.ask(e.a, "o1", 0)
			r.Client(t).Do("FLUSHALL")
			lost := time.Now()
			e.wants(e.ask(e.b, "o2", won.Epoch), elector.Wait)
			if err := del("{baton}:quarantine")(r); err != nil {
				t.Fatal(err)
			}
			e.wants(e.ask(e.b, "o2", won.Epoch), elector.Wait)
			e.awaitWonIn(2*e.ttl, e.b, "o2", won.Epoch)
			if took := time.Since(lost); took < e.ttl-tick {
				t.Errorf("won after %v; want it after one lease of %v", took, e.ttl)
			}
		})
	}
}

// Where Redis' clock falls back, what it counts down lasts that much longer. Nobody
// waits for that: a lease is never longer than the term's, and so with all else.
func TestNobodyWaitsForAClockThatFellBack(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		leave func(e electorate, epoch int64)
	}{
		{"of a dead leader's lease", func(electorate, int64) {}},
		{"of a quarantine", func(e electorate, epoch int64) {
			e.r.Client(e.t).Do("FLUSHALL")
			e.wants(e.ask(e.b, "o2", epoch), elector.Wait)
		}},
		{"of a reservation", func(e electorate, _ int64) {
			if err := e.a.Release(e.t.Context(), "o1", elector.Handover{Event: "stepped_down", To: "gone"}); err != nil {
				e.t.Fatal(err)
			}
		}},
	}
	for design, o := range designs {
		for _, c := range cases {
			t.Run(design+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				r := testsupport.StartRedis(t, testsupport.RedisClock())
				e := newElectorate(t, r, o, shortLease)
				won := e.ask(e.a, "o1", 0)
				c.leave(e, won.Epoch)
				r.StepClock(-time.Hour)
				if next := e.awaitWon(e.b, "o2", won.Epoch); next.Epoch <= won.Epoch {
					t.Errorf("epoch %d after %d", next.Epoch, won.Epoch)
				}
			})
		}
	}
}

// The hash of the term may be lost while its leader lives. The next renewal writes
// it again, on whichever connection.
func TestTheLeaderWritesALostTermAgain(t *testing.T) {
	t.Parallel()
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			e := newElectorate(t, r, o, 5*time.Second)
			won := e.ask(e.a, "o1", 0)
			for range 2 {
				if err := del("{baton}:term")(r); err != nil {
					t.Fatal(err)
				}
				if _, err := e.a.Renew(t.Context(), "o1", won.Epoch); err != nil {
					t.Fatal(err)
				}
				if held := e.ask(e.b, "o2", won.Epoch); held.Holder != "a" || held.Epoch != won.Epoch {
					t.Errorf("after the renewal: %+v", held)
				}
			}
		})
	}
}

// A node that waits for the lease of a forgotten leader waits for that one's, which
// may have been longer than its own.
func TestAQuarantineIsAsLongAsTheLongestLeaseThatIsKnown(t *testing.T) {
	t.Parallel()
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			e := newElectorate(t, r, o, 20*time.Second)
			won := e.ask(e.a, "o1", 0)
			o.Key, o.NodeID, o.TTL = "baton", "short", time.Second
			short := designedLock(t, open(t, r), o)
			e.wants(e.ask(short, "o2", 0), elector.Held)
			r.Client(t).Do("FLUSHALL")
			if wait := e.ask(short, "o2", won.Epoch); wait.Outcome != elector.Wait || wait.Left < 19*time.Second {
				t.Errorf("%+v; want it to wait for 20 s", wait)
			}
		})
	}
}

// Who waits in quarantine tells what it knows: the next winner, also one that has
// just come, goes on above it, whatever Redis' clock says.
func TestTheEpochRisesAboveWhatOthersKnowWhereTheClockFellBack(t *testing.T) {
	t.Parallel()
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t, testsupport.RedisClock())
			e := newElectorate(t, r, o, shortLease)
			won := e.ask(e.a, "o1", 0)
			r.StepClock(-time.Hour)
			r.Client(t).Do("FLUSHALL")
			e.wants(e.ask(e.b, "o2", won.Epoch), elector.Wait)
			if next := e.awaitWon(e.c, "o3", 0); next.Epoch <= won.Epoch {
				t.Errorf("epoch %d after %d", next.Epoch, won.Epoch)
			}
		})
	}
}

// electorate is three nodes that contend for one lock.
type electorate struct {
	t       *testing.T
	r       *testsupport.Redis
	ttl     time.Duration
	a, b, c *redislock.Lock
}

// shortLease is one that a test lets run out. It outlives the steps of a test on a busy machine.
const shortLease = 3 * time.Second

// tick is what Redis, which counts whole milliseconds, may be early by.
const tick = 2 * time.Millisecond

func newElectorate(t *testing.T, r *testsupport.Redis, o redislock.LockOptions, ttl time.Duration) electorate {
	t.Helper()
	o.Key, o.TTL = "baton", ttl
	node := func(id string) *redislock.Lock {
		o.NodeID = id
		return designedLock(t, open(t, r), o)
	}
	return electorate{t, r, ttl, node("a"), node("b"), node("c")}
}

func (e electorate) ask(l *redislock.Lock, owner string, floor int64) elector.Answer {
	e.t.Helper()
	a, err := l.Acquire(e.t.Context(), elector.Candidate{Owner: owner, Floor: floor})
	if err != nil {
		e.t.Fatalf("acquire by %s: %v", owner, err)
	}
	return a
}

func (e electorate) wants(a elector.Answer, want elector.Outcome) {
	e.t.Helper()
	if a.Outcome != want {
		e.t.Fatalf("%+v; want outcome %v", a, want)
	}
}

// awaitWon asks until it wins, waiting as it is told.
func (e electorate) awaitWon(l *redislock.Lock, owner string, floor int64) elector.Answer {
	e.t.Helper()
	return e.awaitWonIn(time.Minute, l, owner, floor)
}

// awaitWonIn is awaitWon for a wait that has an end. Redis began to wait before its first answer came:
// what is sent so much later is sent when the wait is over, however busy the machine is.
func (e electorate) awaitWonIn(wait time.Duration, l *redislock.Lock, owner string, floor int64) elector.Answer {
	e.t.Helper()
	for end := (time.Time{}); ; {
		sent := time.Now()
		a := e.ask(l, owner, floor)
		if a.Outcome == elector.Won {
			return a
		}
		if end.IsZero() {
			end = time.Now().Add(wait + tick)
		}
		if sent.After(end) {
			e.t.Fatalf("%s still waits: %+v", owner, a)
		}
		time.Sleep(min(a.Left+5*time.Millisecond, 100*time.Millisecond))
	}
}
