package linear

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"baton/internal/heartbeat"
	"baton/internal/testsupport"
	"baton/test/linear/wire"
)

// buildNode returns the path of the node's program, whose wall clock can be stepped. It is
// a variable of the package because a test binary has one process and many entry points.
var buildNode = testsupport.SteppedProgram("baton/test/linear/node")

// lab contains five nodes, their servers, and the nemesis that breaks them.
type lab struct {
	t       *testing.T
	program string
	design  wire.Design
	ground  ground
	log     timeline
	history *history
	units   [nodes]*unit

	mu      sync.Mutex
	strikes []*strike
	// meddling is the time until which the nodes were last ordered to meddle.
	meddling int64
	wrongs   []string
}

// strike is a fault that was executed.
type strike struct {
	fault
	target       string
	begun, ended int64 // ended is zero while the fault lasts
}

func newLab(t *testing.T, design wire.Design, g ground, seed uint64) *lab {
	t.Helper()
	l := &lab{t: t, program: buildNode(t), design: design, ground: g, history: follow()}
	dir := t.TempDir()
	for i := range l.units {
		u := &unit{l: l, index: i, dir: dir, done: make(chan struct{}), setup: wire.Setup{
			NodeID: nodeID(i), Design: design, LockKey: lockKey, Seed: seed + uint64(i)*1000,
			Poll: lease / 3, FloorFile: dir + "/" + nodeID(i) + ".floor",
			Timing: heartbeat.Timing{
				TTL: lease, Interval: lease / 5, Timeout: lease / 6, Margin: heartbeat.DefaultMargin(lease), Drain: 100 * time.Millisecond,
			},
		}}
		g.tell(i, &u.setup)
		u.skew(0)
		l.units[i] = u
		go u.supervise()
	}
	l.awaitLeader(time.Minute)
	return l
}

func (l *lab) awaitLeader(within time.Duration) {
	l.t.Helper()
	for until := time.Now().Add(within); l.history.leader() < 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			l.wrong("no node leads after %v", within)
			return
		}
	}
}

// wrong records an error of the nodes. The test continues, because later events may show the cause.
func (l *lab) wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.log.add("WRONG: %s", text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrongs = append(l.wrongs, text)
}

// retire ends all nodes in order, and reads the rest of their histories.
func (l *lab) retire() {
	var all sync.WaitGroup
	for _, u := range l.units {
		all.Go(u.retire)
	}
	all.Wait()
	l.history.end()
	if l.history.err != nil {
		l.wrong("a history cannot be read: %v", l.history.err)
	}
}

// calms returns the time spans without a fault, each beginning at the end of a fault. In each span a node must lead within one lease, or
// within two leases if the store itself was broken. slack is additional time for a busy machine.
func (l *lab) calms(end int64, slack time.Duration) []calm {
	var calms []calm
	for _, s := range l.strikes {
		from, to, broken := s.ended, end, false
		for _, o := range l.strikes {
			broken = broken || o != s && o.begun <= from && (o.ended == 0 || o.ended > from)
			if o.begun > from {
				to = min(to, o.begun)
			}
		}
		if broken || from == 0 {
			continue
		}
		limit := lease + slack
		if l.storeBroken(from-int64(2*lease), from) {
			limit += lease
		}
		calms = append(calms, calm{from, to, limit})
	}
	return calms
}

func (l *lab) storeBroken(from, to int64) bool {
	return slices.ContainsFunc(l.strikes, func(s *strike) bool {
		return (s.place == atStore || s.place == atOther) && s.begun <= to && (s.ended == 0 || s.ended >= from)
	})
}

// keep fails the test if there were errors, and keeps the files that may show the cause. If $CHAOS_KEEP is set, it always keeps them.
// visual writes a picture of the check, or is nil.
func (l *lab) keep(seed uint64, visual func(path string) error) {
	for _, w := range l.wrongs {
		l.t.Error(w)
	}
	if !l.t.Failed() && os.Getenv("CHAOS_KEEP") == "" {
		return
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("baton-linear-%d-", seed))
	if err == nil {
		err = os.CopyFS(dir, os.DirFS(l.units[0].dir))
	}
	if err == nil {
		err = os.WriteFile(dir+"/timeline.txt", []byte(l.log.with(l.history.events)), 0o600)
	}
	if err == nil && visual != nil {
		err = visual(dir + "/check.html")
	}
	if err != nil {
		l.t.Error(err)
	}
	l.t.Logf("CHAOS_SEED=%d replays these faults; histories, timeline and picture are in %s", seed, dir)
}
