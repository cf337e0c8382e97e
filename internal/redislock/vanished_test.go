package redislock_test

import (
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// mishap removes a lock, or the data that protects it, from a leader that still trusts its lease.
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

// leapAhead steps the server's clock, and waits until the server has noticed the step. The wait is needed because Valkey 9.1 reads the
// wall clock only a few times per second.
func leapAhead(t *testing.T, r *testsupport.Redis) {
	t.Helper()
	c := r.Client(t)
	c.Do("SET", "leapt", 1, "EX", 1800)
	r.StepClock(time.Hour)
	testsupport.Await(t, "the server's clock leaps", func() bool { return c.Num("EXISTS", "leapt") == 0 })
}

// A lock that vanishes before its lease can have ended, by the clock of a node that has seen it, has been evicted or deleted, or Redis'
// clock has leapt. Its holder may still trust its lease, so the node that has noticed the loss waits for one lease, and makes all other
// nodes wait, too.
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
				e.wants(e.ask(e.c, "o3", 0), elector.Wait) // node c has not seen the lock
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

// The leader itself continues, if its renewal arrives in time.
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

// A quarantine must end only after its time, and not when its key is lost.
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

// If Redis' clock is set back, the keys of Redis live longer by that time. No node may wait for this additional time, because a lease is
// never longer than the lease of its term. The same holds for the other times.
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

// The hash of the term may be lost while its leader lives. The next renewal must write the hash again, on any connection.
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

// A node that waits for the lease of a forgotten leader must wait for the leader's lease, which may be longer than the node's own lease.
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

// A node that waits in a quarantine sends the highest epoch that it knows. The next winner, also a new node, must get a higher epoch,
// even if Redis' clock is behind.
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

// electorate contains three nodes that contend for one lock.
type electorate struct {
	t       *testing.T
	r       *testsupport.Redis
	ttl     time.Duration
	a, b, c *redislock.Lock
}

// shortLease is the length of a lease that a test lets run out. It is longer than the steps of a test on a busy machine.
const shortLease = 3 * time.Second

// tick is the time by which Redis may be early, because it counts in whole milliseconds.
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

// awaitWon asks for the lock until it wins. After each answer it waits as long as the answer says.
func (e electorate) awaitWon(l *redislock.Lock, owner string, floor int64) elector.Answer {
	e.t.Helper()
	return e.awaitWonIn(time.Minute, l, owner, floor)
}

// awaitWonIn works like awaitWon, but the wait must not be longer than the given time. The wait in Redis began before its first answer
// arrived. So a request that is sent that much later arrives after the end of the wait, even on a busy machine.
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
