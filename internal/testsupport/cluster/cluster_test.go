package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

func TestNodesElectObeySignalsAndTellOfThemselves(t *testing.T) {
	redis := testsupport.StartRedis(t)
	c := cluster.Start(t, cluster.Options{Nodes: 2, RedisURL: redis.URL(), RuntimeDir: true})
	first := c.AwaitLeader(time.Minute)
	if s := c.Standbys(); len(s) != 1 || s[0] == first {
		t.Fatalf("standbys %v beside %s", s, first.ID)
	}
	status, ok := first.Status()
	if !ok || status.Role != "leading" || status.Leader == nil || status.Leader.NodeID != first.ID {
		t.Errorf("status of the leader: %+v, %v", status, ok)
	}
	c.Await(time.Minute, "the lease file, which follows the lead", func() bool {
		_, err := os.Stat(filepath.Join(first.RuntimeDir(), "lease.json"))
		return err == nil
	})
	if lines := first.Lines("leading"); len(lines) != 1 || lines[0].Int("epoch") != status.Leader.Epoch || time.Since(lines[0].Time) > time.Minute {
		t.Errorf("lines of leading: %v", lines)
	}
	if out := c.Command("leader"); out.Code != 0 || !strings.Contains(out.Stdout, first.ID) {
		t.Errorf("baton leader: %+v", out)
	}

	first.Kill()
	if code, ok := first.Exited(); !ok || code != -9 {
		t.Errorf("killed: code %d, %v", code, ok)
	}
	second := c.AwaitOther(first, time.Minute)
	first.Start()
	second.Freeze()
	if second.Leading() || !second.Running() {
		t.Error("a frozen node answers, or is gone")
	}
	c.AwaitOther(second, time.Minute)
	second.Thaw()
	if code := first.Terminate(time.Minute); code != 0 {
		t.Errorf("terminated: code %d", code)
	}
}
