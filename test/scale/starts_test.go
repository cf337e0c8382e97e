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
	startsTake = 45 * time.Second
)

// A leader of whose jobs a thousand are due at once, on a host whose processors are wanted by
// many others, keeps its lease: renewal goes before starting processes.
func TestALeaderThatStartsManyProcessesKeepsItsLease(t *testing.T) {
	server := testsupport.StartRedis(t)
	var jobs strings.Builder
	for i := range manyStarts {
		fmt.Fprintf(&jobs, "- {name: j%03d, schedule: \"@every 1m\", command: [/bin/true]}\n", i)
	}
	lease := testsupport.Paced(3 * time.Second).Round(100 * time.Millisecond)
	c := cluster.Start(t, cluster.Options{Nodes: 1, TTL: lease, RedisURL: server.URL(), JobsYAML: jobs.String()})
	leader := c.AwaitLeader(time.Minute)
	time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute - 2*time.Second)))
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
	time.Sleep(startsTake)
	if code, ended := leader.Exited(); ended {
		t.Fatalf("the leader has ended with code %d", code)
	}
	if lost := leader.Lines("stopping to lead: ending the jobs"); len(lost) > 0 {
		t.Errorf("with a lease of %v the leader has lost it %d times, first at %v", lease, len(lost), lost[0].Time)
	}
	ran, conn := 0, server.Conn()
	for i := range manyStarts {
		if done, err := redis.Bool(conn.Do("HEXISTS", fmt.Sprintf("{baton}:job:j%03d", i), "result_id")); err == nil && done {
			ran++
		}
	}
	t.Logf("with a lease of %v %d of %d commands have run in %v", lease, ran, manyStarts, startsTake)
	if ran < 10 {
		t.Errorf("only %d commands have run", ran)
	}
}
