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
func newQuorum(t *testing.T) (failover, []*testsupport.Redis) {
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
		TTL: ttl, LockKey: lockKey, RedisURL: data.URL(), RedisYAML: fmt.Sprintf("quorum: [%s]", strings.Join(urls, ", ")),
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

func TestAnElectionOnAQuorumFailsOverAndLosesNoTermToADeadMaster(t *testing.T) {
	t.Parallel()
	f, masters := newQuorum(t)
	f.increment("a")
	leader := f.settled()

	killed, clock := time.Now(), testsupport.StartStopwatch(t)
	leader.Kill()
	successor, began := f.term(leader, killed)
	ran := f.firstRun(successor)
	t.Logf("SIGKILL → successor leads after %v, its first run starts after %v", began.Sub(killed), ran.Sub(killed))
	if took := began.Sub(killed) - clock.Still(); took > ttl+grace() {
		t.Errorf("SIGKILL → successor leads after %v, want one lease", took)
	}
	leader.Start()
	f.settled()

	masters[0].Kill()
	before, _ := successor.Status()
	for since := time.Now(); time.Since(since) < 2*ttl; time.Sleep(20 * time.Millisecond) {
		if now := f.Leader(); now != nil && now != successor {
			t.Fatalf("%s leads after a master was killed", now.ID)
		}
	}
	if after, ok := successor.Status(); !ok || after.Leader == nil || after.Leader.Owner != before.Leader.Owner {
		t.Errorf("the term was %+v and is %+v after a master was killed", before.Leader, after.Leader)
	}
	f.increment("a")
	f.Await(soon, "a flush with a master dead", func() bool { return f.pending() == 0 })

	f.quiet()
	asked, clock := time.Now(), testsupport.StartStopwatch(t)
	successor.Signal(syscall.SIGTERM)
	_, began = f.term(successor, asked)
	if code := successor.Wait(soon); code != 0 {
		t.Errorf("%s ended with code %d", successor.ID, code)
	}
	t.Logf("SIGTERM with a master dead → successor leads after %v", began.Sub(asked))
	if took := began.Sub(asked) - clock.Still(); took > ttl/2 {
		t.Errorf("SIGTERM with a master dead → successor leads after %v", took)
	}

	masters[0].Restart()
	successor.Start()
	f.settled()
	clock = testsupport.StartStopwatch(t)
	took := f.stepDown() - clock.Still()
	t.Logf("stepdown after it is back → successor leads after %v", took)
	if took > ttl/2 {
		t.Errorf("stepdown → successor leads after %v", took)
	}
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
	f, masters := newQuorum(t)
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
	killed := time.Now()
	leader.Kill()
	if out := f.Command("release", "--owner", lease.Owner); out.Code != 0 {
		t.Fatalf("baton release: code %d: %s", out.Code, out.Stderr)
	}
	_, began := f.term(leader, killed)
	t.Logf("SIGKILL and release with a master hung → successor leads after %v", began.Sub(killed))
	if took := began.Sub(killed); took > ttl*3/4 {
		t.Errorf("successor leads after %v: the release has not helped", took)
	}
}
