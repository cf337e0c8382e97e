package testsupport_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// refuses waits until the server answers the command with an error of the given kind.
func refuses(t *testing.T, r *testsupport.Redis, command, kind string) {
	t.Helper()
	c := r.Conn()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		words := strings.Fields(command)
		_, err := c.Do(words[0], redis.Args{}.AddFlat(words[1:])...)
		if err != nil && strings.HasPrefix(err.Error(), kind+" ") {
			t.Logf("%s: %v", command, err)
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v, want %s", command, err, kind)
		}
	}
}

func TestReplicaWithoutItsMasterAnswersMasterDown(t *testing.T) {
	master := testsupport.StartRedis(t)
	replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(master), testsupport.RedisHidesStaleData())
	refuses(t, replica, "SET a 1", "READONLY")
	master.Kill()
	refuses(t, replica, "GET a", "MASTERDOWN")
	replica.Restart()
	refuses(t, replica, "GET a", "MASTERDOWN")
}

func TestMasterWithTooFewReplicasAnswersNoReplicas(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t, testsupport.RedisNeedsReplicas(1))
	refuses(t, r, "SET a 1", "NOREPLICAS")
	testsupport.StartRedis(t, testsupport.RedisReplicaOf(r))
	set(t, r.Conn(), "a", "1")
}

func TestLoneClusterNodeAnswersClusterDown(t *testing.T) {
	refuses(t, testsupport.StartRedis(t, testsupport.RedisClusterNode()), "GET a", "CLUSTERDOWN")
}

func TestFailedSnapshotsAreAnsweredWithMisconf(t *testing.T) {
	r := testsupport.StartRedis(t)
	set(t, r.Conn(), "before", "1")
	r.FailSaves()
	refuses(t, r, "SET a 1", "MISCONF")
	r.HealSaves()
	set(t, r.Conn(), "a", "1")
	r.Restart()
	if n, err := redis.Int(r.Conn().Do("DBSIZE")); err != nil || n != 0 {
		t.Fatalf("restarted with %d keys, %v; want none", n, err)
	}
}

func TestLoadingLastsAndKeepsTheData(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t, testsupport.RedisPassword("secret"))
	set(t, r.Conn(), "a", "1")
	began := time.Now()
	r.RestartLoading(time.Second)
	refuses(t, r, "GET a", "LOADING")
	r.AwaitLoaded()
	t.Logf("loaded after %s", time.Since(began).Round(time.Millisecond))
	if took := time.Since(began); took < time.Second {
		t.Errorf("loading lasted %s, want a second", took)
	}
	if got, err := redis.String(r.Conn().Do("GET", "a")); err != nil || got != "1" {
		t.Errorf("after the loading: %q, %v", got, err)
	}
}
