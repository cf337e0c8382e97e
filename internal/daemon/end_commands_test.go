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

// A command that does not care for SIGTERM has its whole grace. Until then no other node can
// flush, and so this node does.
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
	for i := range 2 { // it has been told to end for a while
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

// What else of the node changes meanwhile, such as its clock, leaves that told.
func TestWhatIsWaitedForStaysTold(t *testing.T) {
	t.Parallel()
	var lock toldLock
	clock := int64(0)
	c := &candidacy{lock: &lock, work: &inventory.Workload{}, presence: func(*inventory.Workload) redislock.Presence {
		return redislock.Presence{ClockMS: clock}
	}}
	for _, want := range []redislock.Presence{{Ending: "the end of report"}, {Ending: "the end of report", ClockMS: 500}, {ClockMS: 500}} {
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

// toldLock keeps what it is to tell of the node.
type toldLock struct {
	site.NodeLock
	told redislock.Presence
}

func (l *toldLock) Present(p redislock.Presence) { l.told = p }
