package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"baton/internal/daemon/inventory"
	"baton/internal/daemon/site"
	"baton/internal/redislock"
)

// A command that ignores SIGTERM has its whole grace. Until its end no other node can flush, and so this node continues to flush.
func TestFlushesGoOnWhileACommandHasItsGrace(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	dir := t.TempDir()
	started, end, ended := filepath.Join(dir, "started"), filepath.Join(dir, "end"), filepath.Join(dir, "ended")
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	l.command("report", "@always", "trap '' TERM; touch "+started+"; until [ -e "+end+" ]; do sleep 0.1; done; touch "+ended).Grace = time.Hour
	l.job("views", "@always")
	r := l.start()
	await(t, "the command", func() bool { return exists(started) })
	r.stop()
	await(t, "the status to tell what is waited for", func() bool {
		s, err := l.remote.to.Snapshot(t.Context())
		return err == nil && s.Leader != nil && s.Leader.Ending == "the end of report"
	})
	for i := range 2 { // its stop signal was sent a while ago
		l.do("HINCRBY", "views", "7", 10)
		l.awaitRows(fmt.Sprintf("[[7 %d]]", 10*(i+1)))
	}
	if exists(ended) {
		t.Error("the command has ended before the flushes")
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.endsWell()
	if !exists(ended) {
		t.Error("the command was killed within its grace")
	}
}

// Other changes of the node during this time, such as a change of its clock, keep the reason visible.
func TestWhatIsWaitedForStaysTold(t *testing.T) {
	t.Parallel()
	var lock toldLock
	clock := int64(0)
	c := &candidacy{lock: &lock, work: &inventory.Workload{}, nodeInfo: func(*inventory.Workload) redislock.NodeInfo {
		return redislock.NodeInfo{ClockMS: clock}
	}}
	for _, want := range []redislock.NodeInfo{{Ending: "the end of report"}, {Ending: "the end of report", ClockMS: 500}, {ClockMS: 500}} {
		if clock != want.ClockMS {
			clock = want.ClockMS
			c.present()
		} else {
			c.waitsFor(want.Ending)
		}
		if !reflect.DeepEqual(lock.told, want) {
			t.Errorf("told %+v instead of %+v", lock.told, want)
		}
	}
}

// toldLock records the presence that it would register for the node.
type toldLock struct {
	site.NodeLock
	told redislock.NodeInfo
}

func (l *toldLock) SetNodeInfo(p redislock.NodeInfo) { l.told = p }
