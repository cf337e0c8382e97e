package nodes

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	runs "baton/internal/command"
	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// The packages that the program links in must not be what a command waits for: its
// warden does its work before nearly all of them have begun.
func TestAWardenDoesNotWaitForOtherPackages(t *testing.T) {
	program := cluster.Build(t) // the compiler would trace itself
	t.Setenv("GODEBUG", "inittrace=1")
	var trace strings.Builder
	result, err := runs.Run(t.Context(), runs.Spec{
		Path: "/bin/sh", Argv: []string{"sh", "-c", "exit 3"}, Stderr: &trace,
		Warden: []string{program, "warden"}, Grace: time.Second,
	})
	if err != nil || result.Code != 3 {
		t.Errorf("%+v, %v", result, err)
	}
	began := strings.Count(trace.String(), "init ")
	if began == 0 || began > 2*60 {
		t.Errorf("%d packages began before it and its guard", began)
	}
	for _, late := range []string{"fmt", "encoding/json", "net", "github.com/spf13/cobra", "modernc.org/sqlite"} {
		if strings.Contains(trace.String(), "init "+late+" ") {
			t.Errorf("package %s began before it", late)
		}
	}
}

// Who calls a warden by hand is told so, and runs nothing.
func TestAWardenIsNotCalledByHand(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(cluster.Build(t), "warden", "--", "echo", "ran").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "do not call this command by hand") || strings.Contains(string(out), "ran\n") {
		t.Errorf("%v: %s", err, out)
	}
}

// Many commands are due in the same second: each runs, once for its slot. COMMAND_STARTS=ROUNDS
// measures, that often, of 200, until they have ended, which is more than the delay of their starts.
func TestManyCommandsStartInTheSameSecond(t *testing.T) {
	rounds, strict := effort(t, "COMMAND_STARTS", 1)
	jobs := 200
	if !strict {
		t.Parallel()
		jobs = 60
	}
	server := testsupport.StartRedis(t)
	var yaml strings.Builder
	for i := range jobs {
		fmt.Fprintf(&yaml, "- {name: j%d, schedule: \"@every 5s\", command: [/bin/true]}\n", i)
	}
	c := cluster.Start(t, cluster.Options{Nodes: 1, TTL: 10 * time.Second, LockKey: lockKey, RedisURL: server.URL(), JobsYAML: yaml.String()})
	c.AwaitLeader(soon)
	conn := server.Conn()
	delays := times{what: fmt.Sprintf("slot to the end of `true`, of %d at once", jobs), limit: time.Second}
	from := time.Now().UnixMilli()
	c.Await(3*soon+time.Duration(rounds)*6*time.Second, "the runs", func() bool {
		delays.all = delays.all[:0]
		for i := range jobs {
			entries, err := redis.Values(conn.Do("XRANGE", fmt.Sprintf("{%s}:job:j%d:runs", lockKey, i), from, "+"))
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, e := range entries {
				fields, err := redis.StringMap(e.([]any)[1], nil)
				if err != nil {
					t.Fatal(err)
				}
				slot, _ := strconv.ParseInt(fields["slot"], 10, 64)
				finished, _ := strconv.ParseInt(fields["finished"], 10, 64)
				if fields["state"] != "succeeded" || fields["trigger"] != "schedule" || slot < from || n == rounds {
					continue
				}
				n++
				delays.add(time.Duration(finished-slot) * time.Millisecond)
			}
			if n < rounds {
				return false
			}
		}
		return true
	})
	t.Logf("the daemon has %d MiB in RAM", c.Nodes[0].Resident()>>20)
	if strict {
		delays.report(t)
	}
}
