package testsupport_test

import (
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

// refusal is the text of the error that a command is answered with.
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
