package nodes

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// beat is the time between two heartbeats of a pulse.
const beat = 2 * time.Second

// pulse measures time in heartbeats, those of a node that leads an election of its own at a
// Redis without faults. A machine that stands still makes none, so a busy machine is no
// failure; a node that waits for something else than its turn is.
type pulse struct {
	t    *testing.T
	conn redis.Conn
}

func startPulse(t *testing.T) pulse {
	t.Helper()
	server := testsupport.StartRedis(t)
	c := cluster.Start(t, cluster.Options{
		Nodes: 1, TTL: untilReleased, LockKey: "pulse", RedisURL: server.URL(), ElectionYAML: "heartbeat_interval: " + beat.String(),
	})
	c.AwaitLeader(soon)
	return pulse{t: t, conn: server.Conn()}
}

// beats is how many heartbeats there have been.
func (p pulse) beats() int {
	p.t.Helper()
	return calls(p.t, p.conn, "pexpire")
}

// within fails the test if more heartbeats have come since an event than so many leases have. An
// interval may be a tenth shorter; two more heartbeats are for what else the next leader does.
func (p pulse) within(leases float64, since int, what string) {
	p.t.Helper()
	most := int(leases*float64(ttl)/float64(beat*9/10)) + 3
	got := p.beats() - since
	p.t.Logf("%s after %d heartbeats of %v", what, got, beat)
	if got > most {
		p.t.Errorf("%s after %d heartbeats of %v; want it within %v leases of %v, which are %d", what, got, beat, leases, ttl, most)
	}
}

// calls is how often a Redis has executed a command, inside scripts too.
func calls(t *testing.T, conn redis.Conn, command string) int {
	t.Helper()
	stats, err := redis.String(conn.Do("INFO", "commandstats"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(stats)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
