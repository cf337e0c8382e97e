package redislock_test

import (
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport"
)

// After a restart of Redis its record of the last term may be old. But it is certain that no node led during the quarantine.
func TestInAQuarantineTheLockIsKnownToBeFree(t *testing.T) {
	const ttl = 1500 * time.Millisecond
	for _, c := range []struct {
		name string
		keep bool // the restored data contains the lock, which expires after the restart
	}{{"the lock is gone", false}, {"the lock comes back", true}} {
		t.Run(c.name, func(t *testing.T) {
			for design, o := range designs {
				t.Run(design, func(t *testing.T) {
					r := testsupport.StartRedis(t, testsupport.RedisAOF())
					e := newElectorate(t, r, o, ttl)
					e.wants(e.ask(e.a, "o1", 0), elector.Won)
					began := time.Now()
					r.Restart()
					if !c.keep {
						r.Client(t).Do("DEL", "baton")
					}
					won, waited := e.ask(e.b, "o2", 0), false
					for ; won.Outcome != elector.Won; won = e.ask(e.b, "o2", 0) {
						waited = waited || won.Outcome == elector.Wait
						time.Sleep(min(won.Left+tick, 100*time.Millisecond))
					}
					least := ttl
					switch {
					case c.keep && waited: // the quarantine continues during the lease
						least = time.Millisecond
					case c.keep: // on a busy machine no request comes between the end of the lease and the end of the quarantine
						least = 0
					}
					if most := time.Since(began); won.FreeFor < least || won.FreeFor > most {
						t.Errorf("the lock is said to be free for %v, want between %v and %v", won.FreeFor, least, most)
					}
					client := r.Client(t)
					if left := client.Do("HEXISTS", "{baton}:term", "quarantine_since"); left != int64(0) {
						t.Error("the quarantine is still recorded")
					}
				})
			}
		})
	}
}

// A leader that renews in the new Redis ends the quarantine, so the lock was never free.
func TestALeaderThatGoesOnEndsWhatAQuarantineHasRecorded(t *testing.T) {
	r := testsupport.StartRedis(t, testsupport.RedisAOF())
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			r.Client(t).Do("FLUSHALL")
			e := newElectorate(t, r, o, 20*time.Second)
			first := e.ask(e.a, "o1", 0)
			e.wants(first, elector.Won)
			r.Restart()
			r.Client(t).Do("DEL", "baton")
			e.wants(e.ask(e.b, "o2", 0), elector.Wait)
			if since := r.Client(t).Do("HEXISTS", "{baton}:term", "quarantine_since"); since != int64(1) {
				t.Fatal("the quarantine is not recorded")
			}
			testsupport.Await(t, "the leader to renew on a connection to the new Redis", func() bool {
				_, err := e.a.Renew(t.Context(), "o1", first.Epoch)
				return err == nil
			})
			if since := r.Client(t).Do("HEXISTS", "{baton}:term", "quarantine_since"); since != int64(0) {
				t.Error("the quarantine is still recorded")
			}
		})
	}
}
