package source

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
)

// Redis serves one command at a time, so a slow command of ours delays all clients. SLOWLOG measures wall-clock time. So on a busy machine
// any command may be slow now and then, but a command that is slow by nature is slow in every attempt.
func TestNoCommandBlocksRedisForLong(t *testing.T) {
	const rows, attempts = 20_000, 20
	g := newRig(t)
	for lo := 0; lo < rows; lo += 1000 {
		for i := lo; i < lo+1000; i++ {
			if err := g.Conn.Send("HSET", fmt.Sprintf("user:u%d", i), "name", "somebody", "n", i); err != nil {
				t.Fatal(err)
			}
		}
		g.Do("")
	}
	for _, c := range []struct {
		kind string
		fill func()
		src  flush.Source
		rows int64
	}{
		{"counters", func() { g.fillCounters("views:3", rows) }, g.counters(CountersOptions{}), rows},
		{"counters with a key each, by a set", func() { g.fillPlain(false, rows) }, g.plain(PlainCountersOptions{}), rows},
		{"counters with a key each, by a zset", func() { g.fillPlain(true, rows) }, g.plain(PlainCountersOptions{}), rows},
		// Redis returns twice as many members of a set in the same time. Half of them have no row here.
		{"hashes by a set", func() { g.fillIndex(false, 2*rows) }, g.hashes(IndexedOptions{}), 2 * rows},
		{"hashes by a zset", func() { g.fillIndex(true, rows) }, g.hashes(IndexedOptions{}), rows},
		{"list", func() { g.fillList("orders", rows, map[string]int64{}) }, g.list(ListOptions{}), rows},
		{"stream", func() { g.moreOfStream(rows) }, g.stream(StreamOptions{Inputs: []string{"n"}, Retain: new(time.Duration)}), rows},
	} {
		t.Run(c.kind, func(t *testing.T) {
			var always map[string]string // the commands that were slow in every attempt so far
			for range attempts {
				c.fill()
				slow := g.slowCommands(c.src, c.rows)
				for name := range always {
					if slow[name] == "" {
						delete(always, name)
					}
				}
				if always == nil {
					always = slow
				}
				if len(always) == 0 {
					return
				}
			}
			t.Errorf("slower than %s at each of %d attempts: %q", slowFrom, attempts, always)
		})
	}
}

// fillIndex adds n ids to the index of changed rows.
func (g *rig) fillIndex(zset bool, n int) {
	g.T.Helper()
	for lo := 0; lo < n; lo += 1000 {
		name, args := "SADD", []any{"changed:user"}
		for i := lo; i < lo+1000; i++ {
			if zset {
				name, args = "ZADD", append(args, i)
			}
			// Ids that are no integers make Redis use a hash table, which is slower.
			args = append(args, fmt.Sprintf("u%d", i))
		}
		g.Do(name, args...)
	}
}

// moreOfStream adds n entries to a stream.
func (g *rig) moreOfStream(n int) {
	g.T.Helper()
	for i := range n {
		if err := g.Conn.Send("XADD", "events", "*", "n", i); err != nil {
			g.T.Fatal(err)
		}
		if i%1000 == 999 {
			g.Do("")
		}
	}
}

// callOf returns the part of a command that is the same in the next attempt. A page of a scan counts as its own command, and so do the
// records of a script: on a busy machine, chance decides which one of hundreds is slow.
func callOf(args []string) string {
	n := 2 // a name and a key, or a script
	switch {
	case strings.HasSuffix(args[0], "SCAN"):
		n = 3 // and a cursor
	case args[0] == "EVALSHA" && len(args) > 12:
		n = 7 // and the first of many arguments
	case len(args) > 12:
		n = 3 // as above
	}
	return strings.Join(args[:min(n, len(args))], " ")
}

// slowFrom is less than the time of any command that processes all rows at once: 10 ms for 50,000 rows on an idle machine. On a busy
// machine Redis itself waits for a processor in the middle of a command. In many attempts this wait does not always affect the same
// command.
const slowFrom = 4 * time.Millisecond

// slowCommands flushes once and returns the calls that took longer than slowFrom.
func (g *rig) slowCommands(src flush.Source, want int64) map[string]string {
	g.T.Helper()
	g.Do("CONFIG", "SET", "slowlog-log-slower-than", slowFrom.Microseconds())
	g.Do("SLOWLOG", "RESET")
	if n, err := flush.Backlog(g.T.Context(), []flush.Source{src}); n != want || err != nil {
		g.T.Errorf("backlog %d, %v; want %d", n, err, want)
	}
	if scan, ok := src.(*Scan); ok {
		readAll(g.T, scan, stageNow(g.T, scan, "a"))
	} else if _, err := newDatabase().flush(g.T.Context(), src, nil); err != nil {
		g.T.Fatal(err)
	}
	g.Do("CONFIG", "SET", "slowlog-log-slower-than", -1)
	logs, err := redis.SlowLogs(g.Do("SLOWLOG", "GET", 128), nil)
	if err != nil {
		g.T.Fatal(err)
	}
	slow := map[string]string{}
	for _, l := range logs {
		slow[callOf(l.Args)] = fmt.Sprint(l.Args[:min(4, len(l.Args))], l.ExecutionTime)
	}
	if _, ok := src.(*Stream); !ok { // it records its place
		g.nothingLeft()
	}
	return slow
}
