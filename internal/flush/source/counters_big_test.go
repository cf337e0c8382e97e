package source

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/redisconn/redistest"
)

// A backlog that does not fit into memory, with BATON_TEST_BIG=5000000 counters, is flushed within 150 MB. No command needs more than 10 ms
// of Redis by its nature. The test prints how often the stage is scanned. Run the test without -race, because -race also needs memory.
func TestBigCountersAreFlushedWithinMemory(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("BATON_TEST_BIG"))
	if err != nil {
		n = 6_000
	}
	g := newRig(t)
	passes := 0
	observe := func(step string) error {
		if step == redistest.Before("HSCAN") {
			passes++
		}
		return nil
	}
	for _, c := range []struct {
		kind string
		add  func(i int)
		src  flush.Discarder
	}{
		{"hash", func(i int) { g.Send("HINCRBY", "views:3", fmt.Sprintf("article:%d", i), i%1000) },
			countersOn(t, watched(g.store, observe), CountersOptions{})},
		{"plain", func(i int) {
			g.Send("INCRBY", fmt.Sprintf("hits:p%d", i), i%1000)
			g.Send("SADD", "changed:hits", fmt.Sprintf("p%d", i))
		}, plainOn(t, watched(g.store, observe), PlainCountersOptions{})},
	} {
		t.Run(c.kind, func(t *testing.T) {
			passes = 0
			var want, got int64
			for i := range n {
				c.add(i)
				want += int64(i % 1000)
				if i%1000 == 999 || i == n-1 {
					g.Do("")
				}
			}
			g.Do("CONFIG", "SET", "slowlog-log-slower-than", 10_000, "slowlog-max-len", 1000)
			g.Do("SLOWLOG", "RESET")
			g.Do("CONFIG", "RESETSTAT")
			began := time.Now()
			st := stageNow(t, c.src, "a")
			staged := time.Since(began)
			err := c.src.Read(t.Context(), st, func(p flush.Page) error {
				for _, r := range p.Records {
					n, err := strconv.ParseInt(r.Inputs[1].Text, 10, 64)
					if err != nil {
						return err
					}
					got += n
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.src.Discard(t.Context(), st); err != nil {
				t.Fatal(err)
			}
			g.Do("CONFIG", "SET", "slowlog-log-slower-than", -1)
			logs, err := redis.SlowLogs(g.Do("SLOWLOG", "GET", 1000), nil)
			if err != nil {
				t.Fatal(err)
			}
			var longest redis.SlowLog
			for _, l := range logs {
				if l.ExecutionTime > longest.ExecutionTime {
					longest = l
				}
			}
			t.Logf("%d counters: staged in %v, all in %v; %d passes; peak of this process %d MB; %d commands over 10 ms, the longest "+
				"%v %.40q; %s",
				n, staged.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), passes, peakMB(t), len(logs),
				longest.ExecutionTime, longest.Args[:min(2, len(longest.Args))], g.average("hscan", "evalsha", "unlink"))
			if got != want {
				t.Errorf("the sum is %d, want %d", got, want)
			}
			if peak := peakMB(t); peak > 150 && os.Getenv("BATON_TEST_BIG") != "" {
				t.Errorf("%d MB resident at the peak, want at most 150", peak)
			}
		})
	}
}

// average returns how long Redis needs for commands on average: on a busy machine single ones take longer.
func (g *rig) average(commands ...string) string {
	var all []string
	for _, name := range commands {
		_, after, found := strings.Cut(g.Str("INFO", "commandstats"), "cmdstat_"+name+":")
		if _, usec, ok := strings.Cut(after, "usec_per_call="); found && ok {
			usec, _, _ = strings.Cut(usec, ",")
			all = append(all, name+" "+usec+" µs on average")
		}
	}
	return strings.Join(all, ", ")
}

// peakMB returns the maximum resident memory of this process.
func peakMB(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb >> 10
}
