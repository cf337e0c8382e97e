package nodes

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"baton/internal/operate"
	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// After a restart of Redis the next leader cannot know from Redis what the last one did, but it knows that no node led in the
// quarantine: the slots in it are not of an unknown reason.
func TestSlotsInAQuarantineAreMissedForLackOfALeader(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t, testsupport.RedisAOF())
	nodes := cluster.Start(t, cluster.Options{TTL: ttl, LockKey: lockKey, RedisURL: server.URL(),
		JobsYAML: "- name: tick\n  schedule: \"@every 1s\"\n  catch_up: none\n  command: [\"true\"]\n"})
	history := func() (all []operate.Entry) {
		got := nodes.Command("job", "history", "tick", "-n", "1000", "-o", "json")
		_ = json.Unmarshal([]byte(got.Stdout), &all) // no node answers in between
		return all
	}
	leader := nodes.AwaitLeader(soon)
	nodes.Await(soon, "a run", func() bool {
		return slices.ContainsFunc(history(), func(e operate.Entry) bool { return e.Run != nil })
	})
	server.Kill()
	for _, n := range nodes.Nodes {
		nodes.Await(soon, n.ID+" not to lead", func() bool { return !n.Leading() })
	}
	without := time.Now()
	leader.Kill() // its lock may be there again: if the leader gives it back, there is no quarantine
	server.Restart()
	nodes.AwaitLeader(soon)
	// The slots before the quarantine have another reason, and are recorded apart. On a busy machine a leader misses some for other reasons.
	nodes.Await(soon, "slots of the quarantine to be recorded as missed for lack of a leader", func() bool {
		return slices.ContainsFunc(history(), func(e operate.Entry) bool {
			return e.Missed != nil && e.Missed.Reason == "no_leader" && e.Missed.Count > 0 && e.Missed.Last.After(without)
		})
	})
}
