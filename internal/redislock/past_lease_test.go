package redislock_test

import (
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport"
)

// A new node knows only the lease of the last term that Redis has stored.
func TestAQuarantineIsAsLongAsTheLeaseOfTheTermThatRedisRemembers(t *testing.T) {
	r := testsupport.StartRedis(t)
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			r.Client(t).Do("FLUSHALL")
			e := newElectorate(t, r, o, 20*time.Second)
			e.ask(e.a, "o1", 0)
			// This is the state after a restart from a snapshot that contains the term but not the lock.
			for _, command := range [][]any{{"HSET", "{baton}:term", "run_id", "another"}, {"DEL", "baton"}} {
				r.Client(t).Do(command[0].(string), command[1:]...)
			}
			o.Key, o.NodeID, o.TTL = "baton", "short", time.Second
			if wait := e.ask(designedLock(t, open(t, r), o), "o2", 0); wait.Outcome != elector.Wait || wait.Left < 19*time.Second {
				t.Errorf("%+v; want it to wait for 20 s", wait)
			}
		})
	}
}

// A reservation must end in time, because the named successor may be dead.
func TestAReservationThatIsOverKeepsNobodyOut(t *testing.T) {
	r := testsupport.StartRedis(t)
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			r.Client(t).Do("FLUSHALL")
			e := newElectorate(t, r, o, 20*time.Second)
			e.ask(e.a, "o1", 0)
			if err := e.a.Release(t.Context(), "o1", elector.Handover{Event: "stepped_down", To: "gone"}); err != nil {
				t.Fatal(err)
			}
			r.Client(t).Do("HSET", "{baton}:control", "reserved_until", time.Now().Add(-time.Minute).UnixMilli())
			e.wants(e.ask(e.b, "o2", 0), elector.Won)
		})
	}
}
