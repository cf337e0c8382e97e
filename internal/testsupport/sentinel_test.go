package testsupport_test

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

func TestSentinelReplacesAKilledMasterWhichComesBackAsAReplica(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s := testsupport.StartSentinel(t, testsupport.RedisPassword("secret"), testsupport.SentinelPassword("other"))
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	old := s.Master()
	if n := len(s.Replicas()); n != 2 || len(s.Addresses()) != 3 {
		t.Fatalf("%d replicas, Sentinels at %v", n, s.Addresses())
	}
	c := old.Conn()
	set(t, c, "a", "1")
	if n, err := redis.Int(c.Do("WAIT", 2, 5000)); err != nil || n != 2 {
		t.Fatalf("WAIT: %d replicas, %v", n, err)
	}

	began = time.Now()
	old.Kill()
	promoted := s.AwaitMaster(old)
	t.Logf("failover after %s", time.Since(began).Round(time.Millisecond))
	if got, err := redis.String(promoted.Conn().Do("GET", "a")); err != nil || got != "1" {
		t.Fatalf("GET from the promoted replica: %q, %v", got, err)
	}
	set(t, promoted.Conn(), "a", "2")

	old.Restart()
	began = time.Now()
	s.AwaitReplica(old)
	t.Logf("back as a replica after %s", time.Since(began).Round(time.Millisecond))
	if got, err := redis.String(old.Conn().Do("GET", "a")); err != nil || got != "2" {
		t.Fatalf("GET from the old master: %q, %v", got, err)
	}

	began = time.Now()
	promoted.Freeze()
	third := s.AwaitMaster(promoted)
	t.Logf("failover of a frozen master after %s", time.Since(began).Round(time.Millisecond))
	promoted.Thaw()
	s.AwaitReplica(promoted)

	// After a restart a replica still follows the same master.
	promoted.Restart()
	s.AwaitReplica(promoted)
	sentinel := s.Sentinels()[0]
	sentinel.Restart()
	if s.Master() != third {
		t.Fatal("a restarted Sentinel changed the master")
	}
	sentinel.Client(t).Do("PING")
}

func TestSentinelOverTLSFailsOverByItselfAndWhenAsked(t *testing.T) {
	t.Parallel()
	s := testsupport.StartSentinel(t, testsupport.RedisTLS(true))
	old := s.Master()
	old.Kill()
	promoted := s.AwaitMaster(old)
	set(t, promoted.Conn(), "a", "1")
	old.Restart()
	s.AwaitReplica(old)
	// On a busy machine the Sentinels may soon make the replaced server the master again.
	told := redis.PubSubConn{Conn: s.Sentinels()[0].Conn()}
	if err := told.Subscribe("+switch-master"); err != nil {
		t.Fatal(err)
	}
	s.Failover()
	for {
		switch m := told.ReceiveWithTimeout(time.Minute).(type) {
		case redis.Message:
			t.Logf("the Sentinels told: %s", m.Data)
			return
		case error:
			t.Fatalf("the failover that was asked for did not happen: %v", m)
		}
	}
}
