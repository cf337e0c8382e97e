package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/testsupport"
)

func TestANodeIsExplained(t *testing.T) {
	c := newCLI(t)
	c.env["BATON_REDIS"] = useRedis(t).URL()
	c.env["BATON_TTL"], c.env["BATON_POLL_INTERVAL"] = "10s", "30s"
	c.daemon("--node-id", "db1", "--http", "127.0.0.1:0")
	c.until("db1\n", "leader")
	c.daemon("--node-id", "db2", "--http", "127.0.0.1:0")
	c.until("db2", "status")
	codes := func(node string) string {
		t.Helper()
		want := cmdline.ExitOK
		if node == "db9" {
			want = cmdline.ExitFailure // a user who has mistyped a name gets an error
		}
		got := c.run("explain", node, "-o", "json")
		var x struct {
			NodeID  string                  `json:"node_id"`
			Reasons []struct{ Code string } `json:"reasons"`
		}
		if err := json.Unmarshal([]byte(got.stdout), &x); err != nil || got.code != want || x.NodeID != node {
			t.Fatalf("explain %s: %+v, %v", node, got, err)
		}
		var list []string
		for _, r := range x.Reasons {
			list = append(list, r.Code)
		}
		return strings.Join(list, " ")
	}

	if got := c.run("explain", "db2"); !regexp.MustCompile(`^db2 does not lead:\n- db1 leads: epoch \d+, for \S+, lease \S+ left\n  → to have it lead: baton stepdown --to db2\n$`).MatchString(got.stdout) || got.code != cmdline.ExitOK {
		t.Errorf("a standby: %+v", got)
	}
	if got := c.run("explain", "db1"); !strings.HasPrefix(got.stdout, "db1 leads:\n- db1 leads: epoch ") {
		t.Errorf("the leader: %+v", got)
	}
	if got := codes("db9"); got != "other_leads never_seen" {
		t.Errorf("an unknown node: %s", got)
	}
	c.run("stepdown")
	// Only db1 itself knows that it is aside, for one poll interval. Its page keeps the state for half a second.
	testsupport.Await(t, "the node that has just stepped down to say so", func() bool { return codes("db1") == "other_leads aside" })
	c.run("pause")
	if got := codes("db2"); !strings.HasPrefix(got, "paused") {
		t.Errorf("in a pause: %s", got)
	}
}

func TestBreakingALockWithoutRedisSpeaksOfNoQuorum(t *testing.T) {
	got := newCLI(t).run("lock", "--break", "a", "--redis", "redis://127.0.0.1:1/0")
	if got.code != cmdline.ExitFailure || !strings.HasPrefix(got.stderr, `baton: lock "a": break lock "a": connect to redis 127.0.0.1:1: `) {
		t.Errorf("%+v", got)
	}
}

func TestExplainWithoutRedisSaysSo(t *testing.T) {
	c := newCLI(t)
	got := c.run("explain", "db1", "--redis", "redis://127.0.0.1:1/0")
	if got.code != cmdline.ExitFailure || got.stderr != "" || !strings.Contains(got.stdout, "the election cannot be read from here: ") {
		t.Errorf("%+v", got)
	}
}
