package nodes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

const (
	maxResident  = 25 << 20 // bytes
	maxAnonymous = 10 << 20 // of these, without the pages of the program's file
	mappedMore   = 3 << 20  // so much more of that file the kernel may map on a busy machine
	maxCommands  = 1.0      // a second
)

// An idle standby costs next to nothing, at the default timings: memory, and the
// commands that Redis counts (those inside scripts too) beyond what the leader
// alone makes. IDLE_SECONDS measures it for so long.
func TestIdleStandby(t *testing.T) {
	seconds, strict := effort(t, "IDLE_SECONDS", 6)
	if !strict {
		t.Parallel()
	}
	server := testsupport.StartRedis(t)
	db := testsupport.SQLite(t)
	db.Exec(t, "CREATE TABLE articles (id VARCHAR(40) PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)")
	nodes := cluster.Start(t, cluster.Options{
		Nodes: 4, TTL: ttl, LockKey: lockKey, RedisURL: server.URL(), DatabasesYAML: cluster.DatabaseYAML("main", db),
		JobsYAML: strings.Replace(countersJob, "@every 1s", "30 2 1 1 *", 1),
	})
	leader := nodes.AwaitLeader(soon)
	standbys := nodes.Standbys()
	conn := server.Conn()
	// Time is counted in the leader's renewals: those of a busy machine are as late as what else it does.
	renewals := max(3, seconds/int(beat/time.Second))

	commandsBetween(t, nodes, conn, 2) // what happens once, at the start, is over
	together := commandsBetween(t, nodes, conn, renewals)
	// How much of the program's file the kernel has mapped differs by megabytes on a busy machine. So beside other tests the
	// least one counts, and alone the middle one.
	var each []int64
	for _, n := range standbys {
		each = append(each, n.Resident())
		if own := n.Anonymous(); own > maxAnonymous {
			t.Errorf("an idle standby has written %d KiB of memory, above %d", own>>10, maxAnonymous>>10)
		}
	}
	slices.Sort(each)
	resident, most := each[0], int64(maxResident+mappedMore)
	if strict {
		resident, most = each[len(each)/2], maxResident
	}
	for _, n := range standbys {
		n.Kill()
	}
	commandsBetween(t, nodes, conn, 1)
	alone := commandsBetween(t, nodes, conn, renewals)
	of := float64(renewals) * beat.Seconds()
	rate := float64(together-alone) / of / float64(len(standbys))

	fmt.Printf("idle standby: %.1f MB resident (limit %d), %.2f Redis commands a second (limit %.0f); the leader makes %.2f and has %.1f MB\n",
		float64(resident)/(1<<20), maxResident>>20, rate, maxCommands, float64(alone)/of, float64(leader.Resident())/(1<<20))
	if resident > most {
		t.Errorf("an idle standby has %d KiB resident, above %d", resident>>10, most>>10)
	}
	limit := maxCommands
	if !strict {
		limit *= 2 // these are few renewals, and a round that comes every 15 s may be between them
	}
	if rate > limit {
		t.Errorf("an idle standby makes %.2f commands a second by the leader's renewals, above %.0f", rate, limit)
	}
}

// commandsBetween is how many commands Redis processes while the leader renews so often.
func commandsBetween(t *testing.T, nodes *cluster.Cluster, conn redis.Conn, renewals int) int64 {
	t.Helper()
	asked := int64(0) // our own questions are commands, too
	renewed := func() int { asked++; return calls(t, conn, "pexpire") }
	next := func(from int) int {
		now := from
		nodes.Await(soon, "a renewal", func() bool { now = renewed(); return now > from })
		return now
	}
	first := next(renewed())
	asked = 0
	before := commandsProcessed(t, conn)
	for now := first; now < first+renewals; {
		now = next(now)
	}
	return commandsProcessed(t, conn) - before - asked - 1 // the last question of all is one, too
}

func commandsProcessed(t *testing.T, conn redis.Conn) int64 {
	t.Helper()
	info, err := redis.String(conn.Do("INFO", "stats"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, "total_commands_processed:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("redis does not count its commands")
	return 0
}
