package redislock_test

import (
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport"
)

// A node that has just come knows of no lease but what Redis has kept of the last term.
func TestAQuarantineIsAsLongAsTheLeaseOfTheTermThatRedisRemembers(t *testing.T) {
	r := testsupport.StartRedis(t)
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			if _, err := r.Conn().Do("FLUSHALL"); err != nil {
				t.Fatal(err)
			}
			e := newElectorate(t, r, o, 20*time.Second)
			e.ask(e.a, "o1", 0)
			// As after a restart from a snapshot that has the term and not the lock.
			for _, command := range [][]any{{"HSET", "{baton}:term", "run_id", "another"}, {"DEL", "baton"}} {
				if _, err := r.Conn().Do(command[0].(string), command[1:]...); err != nil {
					t.Fatal(err)
				}
			}
			o.Key, o.NodeID, o.TTL = "baton", "short", time.Second
			if wait := e.ask(designedLock(t, open(t, r), o), "o2", 0); wait.Outcome != elector.Wait || wait.Left < 19*time.Second {
				t.Errorf("%+v; want it to wait for 20 s", wait)
			}
		})
	}
}

// Whoever it was for may be dead.
func TestAReservationThatIsOverKeepsNobodyOut(t *testing.T) {
	r := testsupport.StartRedis(t)
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			if _, err := r.Conn().Do("FLUSHALL"); err != nil {
				t.Fatal(err)
			}
			e := newElectorate(t, r, o, 20*time.Second)
			e.ask(e.a, "o1", 0)
			if err := e.a.Release(t.Context(), "o1", elector.Handover{Event: "stepped_down", To: "gone"}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Conn().Do("HSET", "{baton}:control", "reserved_until", time.Now().Add(-time.Minute).UnixMilli()); err != nil {
				t.Fatal(err)
			}
			e.wants(e.ask(e.b, "o2", 0), elector.Won)
		})
	}
}
