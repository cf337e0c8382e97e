package testsupport_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

func TestClusterReplacesAKilledMasterByItsReplica(t *testing.T) {
	t.Parallel()
	began := time.Now()
	cl := testsupport.StartCluster(t, testsupport.RedisPassword("secret"))
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	if len(cl.Nodes()) != 6 || len(cl.Addresses()) != 6 {
		t.Fatalf("nodes at %v", cl.Addresses())
	}
	old, replica := cl.Owner("a"), cl.ReplicaOf("a")
	c := old.Conn()
	set(t, c, "a", "1")
	if n, err := redis.Int(c.Do("WAIT", 1, 5000)); err != nil || n != 1 {
		t.Fatalf("WAIT: %d replicas, %v", n, err)
	}
	began = time.Now()
	old.Kill()
	if got := cl.AwaitOwner("a", old); got != replica {
		t.Fatalf("%s took over, want the replica %s", got.Addr(), replica.Addr())
	}
	t.Logf("failover after %s", time.Since(began).Round(time.Millisecond))
	if got, err := redis.String(replica.Conn().Do("GET", "a")); err != nil || got != "1" {
		t.Fatalf("GET from the promoted replica: %q, %v", got, err)
	}
	old.Restart()
	cl.AwaitWhole()
	if cl.Owner("a") != replica || cl.ReplicaOf("a") != old {
		t.Fatal("the old master is not its successor's replica")
	}

	began = time.Now()
	replica.Freeze()
	if cl.AwaitOwner("a", replica) != old {
		t.Fatal("another node took over")
	}
	t.Logf("failover of a frozen master after %s", time.Since(began).Round(time.Millisecond))
	replica.Thaw()
	cl.AwaitWhole()
}

func TestSlotMovesWithItsKeysWhileClientsUseIt(t *testing.T) {
	t.Parallel()
	cl := testsupport.StartCluster(t, testsupport.RedisPassword("secret"))
	from := cl.Owner("{a}")
	var to *testsupport.Redis
	for _, key := range []string{"b", "c", "d", "e", "f"} {
		if r := cl.Owner(key); r != from {
			to = r
		}
	}
	c := from.Conn()
	if _, err := c.Do("SET", "{a}1", "1", "PX", 60_000); err != nil {
		t.Fatal(err)
	}
	set(t, c, "{a}2", "2")

	move := cl.BeginMove("{a}", to)
	if err := move.MoveKeys("{a}1"); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{"GET {a}1": "ASK ", "MGET {a}1 {a}2": "TRYAGAIN ", "GET {a}3": "ASK "} {
		if got := refusal(t, c, command); !strings.HasPrefix(got, want) {
			t.Errorf("%s during the move: %q, want %s", command, got, want)
		}
	}
	if err := move.Finish(); err != nil {
		t.Fatal(err)
	}
	if got := refusal(t, c, "GET {a}2"); !strings.HasPrefix(got, "MOVED ") || !strings.HasSuffix(got, to.Addr()) {
		t.Errorf("after the move: %q, want MOVED to %s", got, to.Addr())
	}
	if cl.Owner("{a}") != to {
		t.Error("the slot has not moved")
	}
	got, err := redis.Strings(to.Conn().Do("MGET", "{a}1", "{a}2"))
	if err != nil || strings.Join(got, "") != "12" {
		t.Errorf("at the new owner: %v, %v", got, err)
	}
	if ttl, err := redis.Int(to.Conn().Do("PTTL", "{a}1")); err != nil || ttl <= 0 {
		t.Errorf("the moved key has %d ms to live, %v", ttl, err)
	}
	cl.MoveSlot("{a}", from)
	if cl.Owner("{a}") != from {
		t.Error("the slot has not moved back")
	}
	// Servers that move whole slots also record each move.
	whole, err := cl.Daemon().MovesWhole()
	moves, unknown := redis.Values(to.Conn().Do("CLUSTER", "GETSLOTMIGRATIONS"))
	if err != nil || whole != (unknown == nil) || whole && len(moves) == 0 {
		t.Errorf("it moves slots whole: %v, %v; its record: %v, %v", whole, err, moves, unknown)
	}
}

// The test checks four things. A view shows the owner of each slot. TakeSlot leaves the keys of the slot behind. MendSlot ends an
// unfinished move. GiveSlot gives a slot without an owner to a master.
func TestAClusterIsSeenAndItsSlotsAreTakenAndMended(t *testing.T) {
	t.Parallel()
	cl := testsupport.StartCluster(t)
	d, key := cl.Daemon(), "{a}"
	slot, err := d.Slot(key)
	if err != nil {
		t.Fatal(err)
	}
	owner := func() (has, other *testsupport.RedisDaemon) {
		t.Helper()
		cl.AwaitAgreement()
		v, err := d.View()
		if err != nil {
			t.Fatal(err)
		}
		has = v.Owners[slot]
		masters := v.Masters()
		if len(masters) != 3 || !slices.Contains(masters, has) || len(v.Replicas[has]) != 1 || v.Replicas[has][0].Addr() != cl.ReplicaOf(key).Addr() {
			t.Fatalf("it sees %d masters, and %v as replicas", len(masters), v.Replicas)
		}
		return has, masters[slices.IndexFunc(masters, func(r *testsupport.RedisDaemon) bool { return r != has })]
	}
	keys := func() int64 {
		t.Helper()
		return cl.Owner(key).Client(t).Num("CLUSTER", "COUNTKEYSINSLOT", slot)
	}
	set(t, cl.Owner(key).Conn(), "{a}1", "1")
	set(t, cl.Owner(key).Conn(), "{a}2", "2")
	has, other := owner()
	move, err := d.BeginMove(key, other)
	if err != nil {
		t.Fatal(err)
	}
	if err := move.MoveKeys("{a}1"); err != nil {
		t.Fatal(err)
	}
	if left, err := move.Keys(10); err != nil || !slices.Equal(left, []string{"{a}2"}) || keys() != 1 {
		t.Errorf("left: %q, %v", left, err)
	}
	if err := d.MendSlot(key); err != nil {
		t.Fatal(err)
	}
	if now, _ := owner(); now != has || keys() != 2 {
		t.Errorf("mended, %s has the slot, and %d keys", now.Addr(), keys())
	}
	if err := d.TakeSlot(key, other); err != nil {
		t.Fatal(err)
	}
	if now, _ := owner(); now != other || keys() != 0 {
		t.Errorf("taken, %s has the slot, and %d keys", now.Addr(), keys())
	}
	if err := d.NodesAgree(); err != nil {
		t.Error(err)
	}
	cl.Owner(key).Client(t).Do("CLUSTER", "DELSLOTS", slot) // the other nodes do not learn of this
	if err := d.GiveSlot(key); err != nil {
		t.Fatal(err)
	}
	owner()
	cl.ReplicaOf(key).Kill()
	if err := d.NodesAgree(); err != nil {
		t.Errorf("with a replica down: %v", err)
	}
}

func TestClusterOverTLSReplicatesAndFailsOverInOrder(t *testing.T) {
	t.Parallel()
	cl := testsupport.StartCluster(t, testsupport.RedisTLS(true))
	old, replica := cl.Owner("a"), cl.ReplicaOf("a")
	set(t, old.Conn(), "a", "1")
	cl.Failover("a")
	if got, err := redis.String(replica.Conn().Do("GET", "a")); err != nil || got != "1" {
		t.Fatalf("GET from the new master: %q, %v", got, err)
	}
	cl.AwaitWhole()
	if cl.Owner("a") != replica || cl.ReplicaOf("a") != old {
		t.Fatal("master and replica have not changed places")
	}
}

// refusal returns the text of the error with which the server answers a command.
func refusal(t *testing.T, c redis.Conn, command string) string {
	t.Helper()
	words := strings.Fields(command)
	args := redis.Args{}.AddFlat(words[1:])
	reply, err := c.Do(words[0], args...)
	if err == nil {
		t.Fatalf("%s is answered with %v, want a refusal", command, reply)
	}
	return err.Error()
}
