package nodes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// newQuorum is a failover whose lock is on three masters of its own.
func newQuorum(t *testing.T, lease time.Duration) (failover, []*testsupport.Redis) {
	t.Helper()
	data := testsupport.StartRedis(t)
	var masters []*testsupport.Redis
	var urls []string
	for range 3 {
		m := testsupport.StartRedis(t)
		masters, urls = append(masters, m), append(urls, m.URL())
	}
	db := testsupport.SQLite(t)
	db.Exec(t, "CREATE TABLE articles (id VARCHAR(40) PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)")
	c := cluster.Start(t, cluster.Options{
		TTL: lease, LockKey: lockKey, RedisURL: data.URL(), RedisYAML: fmt.Sprintf("quorum: [%s]", strings.Join(urls, ", ")),
		DatabasesYAML: cluster.DatabaseYAML("main", db), JobsYAML: countersJob, RuntimeDir: true,
	})
	f := failover{Cluster: c, t: t, server: data, conn: data.Conn()}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for i, m := range masters {
			owner, err := redis.String(m.Conn().Do("GET", lockKey))
			fmt.Fprintf(t.Output(), "master %d: owner %q, %v\n", i+1, owner, err)
		}
	})
	return f, masters
}

func TestAnElectionOnAQuorumFailsOverAfterACrash(t *testing.T) {
	t.Parallel()
	clock := startPulse(t)
	f, _ := newQuorum(t, ttl)
	leader := f.settled()
	last := epoch(leader)
	leader.Kill()
	since := clock.beats()
	successor, _ := f.term(last)
	clock.within(1, since, "SIGKILL → successor leads")
	f.firstRun(successor)
}

func TestAnElectionOnAQuorumLosesNoTermToADeadMaster(t *testing.T) {
	t.Parallel()
	f, masters := newQuorum(t, untilReleased)
	leader := f.settled()

	masters[0].Kill()
	last, living := epoch(leader), masters[1].Conn()
	renewed := calls(t, living, "pexpire")
	f.Await(soon, "three renewals with a master dead", func() bool {
		if now := f.Leader(); now != nil && now != leader {
			t.Fatalf("%s leads after a master was killed", now.ID)
		}
		return calls(t, living, "pexpire") >= renewed+3
	})
	if s, ok := leader.Status(); !ok || s.Leader == nil || s.Leader.NodeID != leader.ID || epoch(leader) != last {
		t.Errorf("the term was %d, and with a master killed %s says %+v", last, leader.ID, s.Leader)
	}
	f.increment("a")
	f.Await(soon, "a flush with a master dead", func() bool { return f.pending() == 0 })

	// Nobody waits for this lease: with a master dead, too, the next term comes by the release.
	leader.Signal(syscall.SIGTERM)
	f.term(last)
	if code := leader.Wait(soon); code != 0 {
		t.Errorf("%s ended with code %d", leader.ID, code)
	}

	masters[0].Restart()
	leader.Start()
	f.settled()
	f.stepDown()
	f.Await(soon, "the master that was dead to be taken again", func() bool {
		first, err := redis.String(masters[0].Conn().Do("GET", lockKey))
		second, _ := redis.String(masters[1].Conn().Do("GET", lockKey))
		return err == nil && first == second
	})
	if there, err := redis.Bool(f.conn.Do("EXISTS", lockKey)); err != nil || there {
		t.Errorf("the lock is where the data is: %v, %v", there, err)
	}
}

// What systemd leaves to `baton release` after a crash works by the lease file's
// owner, on all masters.
func TestTheLockOfAKilledLeaderOnAQuorumIsReleasedByItsOwner(t *testing.T) {
	t.Parallel()
	f, masters := newQuorum(t, untilReleased)
	leader := f.settled()
	text, err := os.ReadFile(filepath.Join(leader.RuntimeDir(), "lease.json"))
	if err != nil {
		t.Fatal(err)
	}
	var lease struct {
		Owner string `json:"owner"`
	}
	if err := json.Unmarshal(text, &lease); err != nil {
		t.Fatalf("lease.json: %v: %s", err, text)
	}
	masters[2].Freeze()
	defer masters[2].Thaw()
	last := epoch(leader)
	leader.Kill()
	if out := f.Command("release", "--owner", lease.Owner); out.Code != 0 {
		t.Fatalf("baton release: code %d: %s", out.Code, out.Stderr)
	}
	f.term(last) // long before this lease ends
}
