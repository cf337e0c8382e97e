package scale

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

const (
	manyStarts = 1000 // of the same slot
	busyLoops  = 8    // for each processor
	enough     = 30   // starts, and several renewals, among all that is started
)

// A leader of whose jobs a thousand are due at once, on a host whose processors are wanted by
// many others, keeps its lease: renewal goes before starting processes.
func TestALeaderThatStartsManyProcessesKeepsItsLease(t *testing.T) {
	server := testsupport.StartRedis(t)
	var jobs strings.Builder
	for i := range manyStarts {
		fmt.Fprintf(&jobs, "- {name: j%03d, schedule: \"@every 1m\", command: [/bin/true]}\n", i)
	}
	c := cluster.Start(t, cluster.Options{Nodes: 1, RedisURL: server.URL(), JobsYAML: jobs.String()})
	leader := c.AwaitLeader(time.Minute)
	for range busyLoops * runtime.NumCPU() {
		loop := exec.Command("/bin/sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = loop.Process.Kill() // it does not end by itself
			_ = loop.Wait()
		})
	}
	conn := server.Conn()
	ran := 0
	c.Await(8*time.Minute, "commands to have run", func() bool {
		ran = 0
		for i := range manyStarts {
			if done, err := redis.Bool(conn.Do("HEXISTS", fmt.Sprintf("{baton}:job:j%03d", i), "result_id")); err == nil && done {
				ran++
			}
		}
		time.Sleep(time.Second) // these are many questions
		return ran >= enough
	})
	if code, ended := leader.Exited(); ended {
		t.Fatalf("the leader has ended with code %d", code)
	}
	if lost := leader.Lines("stepping down: ending the jobs"); len(lost) > 0 {
		t.Errorf("the leader has lost its lease %d times, first at %v", len(lost), lost[0].Time)
	}
	t.Logf("%d of %d commands have run", ran, manyStarts)
}
