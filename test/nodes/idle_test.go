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
	maxResident = 25 << 20 // bytes
	maxCommands = 1.0      // a second
)

// An idle standby costs next to nothing, at the default timings: memory, and the
// commands that Redis counts (those inside scripts too) beyond what the leader
// alone makes.
func TestIdleStandby(t *testing.T) {
	seconds, strict := effort(t, "IDLE_SECONDS", 6)
	if !strict {
		t.Parallel()
	}
	server := testsupport.StartRedis(t)
	db := testsupport.SQLite(t)
	db.Exec(t, "CREATE TABLE articles (id VARCHAR(40) PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)")
	nodes := cluster.Start(t, cluster.Options{
		Nodes: 4, TTL: 10 * time.Second, LockKey: lockKey, RedisURL: server.URL(), DatabasesYAML: cluster.DatabaseYAML("main", db),
		JobsYAML: strings.Replace(countersJob, "@every 1s", "30 2 1 1 *", 1),
	})
	leader := nodes.AwaitLeader(soon)
	standbys := nodes.Standbys()
	conn := server.Conn()
	window := time.Duration(seconds) * time.Second

	time.Sleep(3 * time.Second) // what happens once, at the start, is over
	together := commandRate(t, conn, window)
	// How much of the program's file the kernel has mapped differs by megabytes on a busy machine. So beside other tests the
	// least one counts, and alone the middle one.
	var each []int64
	for _, n := range standbys {
		each = append(each, n.Resident())
	}
	slices.Sort(each)
	resident := each[0]
	if strict {
		resident = each[len(each)/2]
	}
	for _, n := range standbys {
		n.Kill()
	}
	time.Sleep(time.Second)
	alone := commandRate(t, conn, window)
	rate := (together - alone) / float64(len(standbys))

	fmt.Printf("idle standby: %.1f MB resident (limit %d), %.2f Redis commands a second (limit %.0f); the leader makes %.2f and has %.1f MB\n",
		float64(resident)/(1<<20), maxResident>>20, rate, maxCommands, alone, float64(leader.Resident())/(1<<20))
	if resident > maxResident {
		t.Errorf("an idle standby has %d KiB resident, above %d", resident>>10, maxResident>>10)
	}
	limit := maxCommands
	if !strict {
		limit *= 2 // the window is short, and may hold a round that comes every 15 s
	}
	if rate > limit {
		t.Errorf("an idle standby makes %.2f commands a second, above %.0f", rate, limit)
	}
}

// commandRate is how many commands a second Redis processes during the window.
func commandRate(t *testing.T, conn redis.Conn, window time.Duration) float64 {
	t.Helper()
	before, began := commandsProcessed(t, conn), time.Now()
	time.Sleep(window)
	after, took := commandsProcessed(t, conn), time.Since(began)
	return float64(after-before-1) / took.Seconds() // the question itself is one
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
