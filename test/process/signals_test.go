package process

import (
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// Whoever ends a process and its group, as timeout does, sends it two signals. The leader
// releases its lock all the same. One that comes later kills.
func TestTwoSignalsAtATimeAreOneOrder(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	for range 5 { // a machine that stands still between two signals shows nothing
		nodes := cluster.Start(t, cluster.Options{Nodes: 1, TTL: time.Hour, RedisURL: server.URL(), ElectionYAML: "drain: 1s", JobsYAML: `
- name: slow-to-end
  schedule: "@always"
  shell: true
  command: "trap 'sleep 0.3; exit' TERM; while :; do sleep 0.05; done"
`})
		leader := nodes.AwaitLeader(soon)
		sent := time.Now()
		leader.Signal(syscall.SIGTERM)
		nodes.Await(soon, "the leader to stop", func() bool { return len(leader.Lines("stepping down: ending the jobs")) > 0 })
		leader.Signal(syscall.SIGTERM)
		took := time.Since(sent)
		code := leader.Wait(soon)
		if took > time.Second {
			server.Client(t).Do("FLUSHALL")
			continue
		}
		if left, err := redis.Int(server.Conn().Do("EXISTS", lockKey)); code != 0 || left != 0 || err != nil {
			t.Errorf("exit code %d, locks left behind: %d, %v", code, left, err)
		}
		return
	}
	t.Error("no two signals were sent within a second")
}
