package redislock_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
)

// The keys of a slot move one by one, and the move may take long. While the script's keys are on two nodes, or some of them exist on
// neither node, Redis refuses every command with several keys. The lease must be renewed nevertheless.
func TestALeaderGoesOnLeadingWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := testsupport.StartCluster(t)
	const ttl = 30 * time.Second
	var resharding sync.Mutex // Redis moves only one slot at a time
	for name, o := range map[string]redislock.LockOptions{"{string}": {}, "{redisson}": {Format: script.Redisson}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openWith(t, redisconn.Options{Cluster: cluster.Addresses()[:1]})
			o.Key, o.NodeID, o.TTL = name+"lock", "a", ttl
			a := campaignEvery(t, s, o, ttl/100)
			term := a.term(t)
			from := cluster.Owner(o.Key)
			to := anotherMaster(t, cluster, from)

			move := cluster.BeginMove(o.Key, to)
			a.goesOnRenewing(t, term, "with the move begun")
			if err := move.MoveKeys(o.Key); err != nil {
				t.Fatal(err)
			}
			a.goesOnRenewing(t, term, "with the lock alone moved")
			moveAll(t, move, from, o.Key)
			a.goesOnRenewing(t, term, "with all keys moved, and the slot not")
			resharding.Lock()
			err := move.Finish()
			cluster.AwaitOwner(o.Key, from)
			resharding.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			a.goesOnRenewing(t, term, "after the move")

			resharding.Lock()
			cluster.MoveSlot(o.Key, anotherMaster(t, cluster, from, to)) // by now the nodes know of the first move
			cluster.AwaitOwner(o.Key, to)
			resharding.Unlock()
			a.goesOnRenewing(t, term, "after a quick move")
			if n := a.failed.Load(); n > 0 {
				t.Logf("%d renewals failed in all, and were repeated", n)
			}

			// The leader has confirmed its term on the new node, so its successor need not wait.
			a.stop()
			b := designedLock(t, s, redislock.LockOptions{Key: o.Key, NodeID: "b", TTL: ttl, Format: o.Format})
			if answer, err := acquireOnce(t, b, "b-1"); err != nil || answer.Outcome != elector.Won || answer.Epoch <= term.Epoch() {
				t.Errorf("the successor: %+v, %v; want it to win above epoch %d", answer, err, term.Epoch())
			}
		})
	}
}

// moveAll moves every key that the election has on the old node.
func moveAll(t *testing.T, move *testsupport.SlotMove, from *testsupport.Redis, lockKey string) {
	t.Helper()
	keys, err := redis.Strings(from.Conn().Do("KEYS", lockKey+"*"))
	if err != nil {
		t.Fatal(err)
	}
	if err := move.MoveKeys(keys...); err != nil {
		t.Fatal(err)
	}
}

// anotherMaster returns a master that is not among the given servers.
func anotherMaster(t *testing.T, cluster *testsupport.RedisCluster, not ...*testsupport.Redis) *testsupport.Redis {
	t.Helper()
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		if r := cluster.Owner(key); !slices.Contains(not, r) {
			return r
		}
	}
	t.Fatal("there is no other master")
	return nil
}

// The replica that takes over has the lock, so the term continues.
func TestALeaderOutlivesTheFailoverOfItsMaster(t *testing.T) {
	t.Parallel()
	cluster := testsupport.StartCluster(t)
	s := openWith(t, redisconn.Options{Cluster: cluster.Addresses()})
	o := redislock.LockOptions{Key: "baton", NodeID: "a", TTL: 15 * time.Second}
	a := campaign(t, s, o)
	term := a.term(t)
	testsupport.AwaitNoError(t, "the node watches", func() error {
		if a.hints.Load() == 0 {
			return errors.New("no hint yet")
		}
		return nil
	})
	hints := a.hints.Load()
	master := cluster.Owner(o.Key)
	watched := watchersOf(t, cluster)
	master.Kill()
	successor := cluster.AwaitOwner(o.Key, master)
	testsupport.AwaitNoError(t, "the lease is renewed at the new master", func() error {
		left, err := redis.Int64(successor.Conn().Do("PTTL", o.Key))
		if err == nil && left < o.TTL.Milliseconds()*3/4 {
			err = errors.New("the lease is old")
		}
		return err
	})
	a.stillLeads(t, term, "after the failover")
	if watched == master { // otherwise no subscription was cut
		testsupport.AwaitNoError(t, "it watches again", func() error {
			if a.hints.Load() == hints {
				return errors.New("no hint since")
			}
			return nil
		})
	}

	// While a master and its replica are gone, the other nodes answer CLUSTERDOWN.
	other := newLock(t, s, keyAt(t, cluster, anotherMaster(t, cluster, successor)), "b", time.Second)
	successor.Kill()
	testsupport.AwaitNoError(t, "the cluster is down", func() error {
		_, err := acquireOnce(t, other, "b-1")
		if err == nil || !strings.Contains(err.Error(), "CLUSTERDOWN") {
			return errors.New("it is not refused")
		}
		return nil
	})
	master.Restart()
	successor.Restart()
	testsupport.AwaitNoError(t, "the lock answers again", func() error { _, err := acquireOnce(t, other, "b-1"); return err })
}

// keyAt returns a key whose slot belongs to the given master.
func keyAt(t *testing.T, cluster *testsupport.RedisCluster, r *testsupport.Redis) string {
	t.Helper()
	for key := 'a'; key <= 'z'; key++ {
		if cluster.Owner(string(key)) == r {
			return string(key)
		}
	}
	t.Fatal("the master has no slot")
	return ""
}

// watchersOf returns the node that has a subscriber to the wake channel.
func watchersOf(t *testing.T, cluster *testsupport.RedisCluster) *testsupport.Redis {
	t.Helper()
	for _, r := range cluster.Nodes() {
		n, err := redis.Int64Map(r.Conn().Do("PUBSUB", "NUMSUB", "{baton}:wake"))
		if err == nil && n["{baton}:wake"] > 0 {
			return r
		}
	}
	return nil
}

// While one caller asks for the map of slots for the first time, the other callers wait for the answer. An unknown map does not mean that
// no node serves the slot.
func TestWhoeverIsFirstAtAClusterWaitsForItsLayout(t *testing.T) {
	t.Parallel()
	cluster := testsupport.StartCluster(t)
	for range 10 {
		s := openWith(t, redisconn.Options{Cluster: cluster.Addresses()})
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				conn, err := s.Conn(t.Context(), "baton")
				if err != nil {
					t.Error(err)
					return
				}
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
	}
}

func TestAWakeUpReachesEveryNodeOfACluster(t *testing.T) {
	t.Parallel()
	cluster := testsupport.StartCluster(t)
	s := openWith(t, redisconn.Options{Cluster: cluster.Addresses()})
	const ttl = time.Hour // renewals and polls are minutes apart, so the nodes act only when hints wake them
	a := campaign(t, s, redislock.LockOptions{Key: "baton", NodeID: "a", TTL: ttl})
	term := a.term(t)
	b := campaign(t, openWith(t, redisconn.Options{Cluster: cluster.Addresses()}), redislock.LockOptions{Key: "baton", NodeID: "b",
		TTL: ttl})
	testsupport.AwaitNoError(t, "both watch", func() error {
		if a.hints.Load() == 0 || b.hints.Load() == 0 || b.elector.Holder() != "a" {
			return errors.New("not yet")
		}
		return nil
	})
	if _, _, err := redislock.NewElection(s, "baton", script.String).StepDown(t.Context(), "b", "test"); err != nil {
		t.Fatal(err)
	}
	if next := b.term(t); next.Epoch() <= term.Epoch() {
		t.Errorf("epoch %d after %d", next.Epoch(), term.Epoch())
	}

	// A URL of only one node is not enough.
	owner := cluster.Owner("baton")
	single := newLock(t, openWith(t, redisconn.Options{URL: anotherMaster(t, cluster, owner).URL()}), "baton", "c", time.Second)
	if _, err := acquireOnce(t, single, "c-1"); !errors.Is(err, elector.ErrRefused) || !strings.Contains(err.Error(), "under cluster") {
		t.Errorf("acquire at another node: %v; want MOVED explained", err)
	}
}
