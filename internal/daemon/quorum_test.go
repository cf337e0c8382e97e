package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"

	"baton/internal/config"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// quorumOf is a node "a" whose lock is on three masters of its own.
func quorumOf(t *testing.T) (c config.Config, data *testsupport.Redis, masters []*testsupport.Redis) {
	t.Helper()
	data = testsupport.StartRedis(t)
	c = configFor(data.URL())
	for range 3 {
		m := testsupport.StartRedis(t)
		masters = append(masters, m)
		c.Redis.Quorum = append(c.Redis.Quorum, m.URL())
	}
	return c, data, masters
}

func exists(t *testing.T, r *testsupport.Redis, key string) bool {
	t.Helper()
	there, err := redis.Bool(r.Conn().Do("EXISTS", key))
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// mastersHeld counts the masters on which the lock is held.
func mastersHeld(t *testing.T, masters []*testsupport.Redis) int {
	t.Helper()
	n := 0
	for _, m := range masters {
		if exists(t, m, "baton") {
			n++
		}
	}
	return n
}

func remote(t *testing.T, c config.Config) *Remote {
	t.Helper()
	r, err := Dial(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestAnElectionOnAQuorumLeavesTheDataAlone(t *testing.T) {
	t.Parallel()
	c, data, masters := quorumOf(t)
	a := start(t, c, nil)
	a.leads()
	await(t, "all masters to grant the lock", func() bool { return mastersHeld(t, masters) == 3 })
	if exists(t, data, "baton") || exists(t, data, "{baton}:term") || exists(t, data, "{baton}:nodes") {
		t.Error("the election has left something where the data is")
	}
	s, err := remote(t, c).Snapshot(t.Context())
	if err != nil || s.Leader == nil || s.Leader.NodeID != "a" || s.Leader.Epoch == 0 || s.Leader.LeaseLeftMS <= 0 || len(s.Nodes) != 1 {
		t.Errorf("%+v, leader %+v, %v", s, s.Leader, err)
	}
	if err := a.end(); err != nil {
		t.Error(err)
	}
	// What a busy master was not told in time goes with its lease, and the node's entry there
	// with the next node that looks.
	await(t, "no master to be left with a lock", func() bool { return mastersHeld(t, masters) == 0 })
	listed := 0
	for _, m := range masters {
		if exists(t, m, "{baton}:nodes") {
			listed++
		}
	}
	if listed > len(masters)/2 {
		t.Errorf("%d of %d masters still list the node", listed, len(masters))
	}
}

// One of three masters dead, or hung: commands see and steer the election all the same.
func TestCommandsNeedAMajorityOfTheMastersOnly(t *testing.T) {
	t.Parallel()
	c, _, masters := quorumOf(t)
	a := start(t, c, nil)
	a.leads()
	await(t, "all masters to grant the lock", func() bool { return mastersHeld(t, masters) == 3 })
	b := c
	b.Node.ID = "b"
	start(t, b, nil)
	r := remote(t, c)
	leader := func() string {
		began := time.Now()
		s, err := r.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > testsupport.Paced(2*time.Second) {
			t.Errorf("a look at the election took %v", took)
		}
		if s.Leader == nil {
			return ""
		}
		return s.Leader.NodeID
	}
	await(t, "both nodes to be listed", func() bool { s, err := r.Snapshot(t.Context()); return err == nil && len(s.Nodes) == 2 })

	masters[1].Freeze()
	if id := leader(); id != "a" {
		t.Errorf("with a master hung %q leads", id)
	}
	h, err := r.StepDown(t.Context(), "", "test", 10*time.Second)
	if err != nil || h.From != "a" || h.To != "b" {
		t.Errorf("step down with a master hung: %+v, %v", h, err)
	}
	masters[1].Thaw()
	await(t, "the new leader to take the master that hung", func() bool {
		owner, err := redis.String(masters[1].Conn().Do("GET", "baton"))
		other, _ := redis.String(masters[0].Conn().Do("GET", "baton"))
		return err == nil && owner == other
	})
	masters[2].Kill()
	p, err := r.Pause(t.Context(), "by the test", 10*time.Second)
	if err != nil || p.Leader != "b" {
		t.Errorf("pause with a master dead: %+v, %v", p, err)
	}
	time.Sleep(c.Election.TTL)
	if id := leader(); id != "" {
		t.Errorf("%s leads in a pause", id)
	}
	masters[2].Restart()
	if done, err := r.Resume(t.Context(), "by the test", 10*time.Second); err != nil || done.Was != "by the test" || done.Leader == "" {
		t.Errorf("resume: %+v, %v", done, err)
	}
	masters[0].Kill()
	masters[1].Kill()
	if _, err := r.Snapshot(t.Context()); err == nil {
		t.Error("one of three masters is taken for the election")
	}
}

func TestTheLockOfACrashedLeaderIsReleasedOnAllMasters(t *testing.T) {
	t.Parallel()
	c, _, masters := quorumOf(t)
	dir := t.TempDir()
	a := start(t, c, map[string]string{"RUNTIME_DIRECTORY": dir})
	a.leads()
	var l lease
	await(t, "the lease file and three masters", func() (ok bool) {
		l, ok, _ = readLease(filepath.Join(dir, "lease.json"))
		return ok && mastersHeld(t, masters) == 3
	})
	for _, m := range masters { // as if the term were a dead one's, which nobody renews
		if owner, err := redis.String(m.Conn().Do("GET", "baton")); err != nil || owner != l.Owner {
			t.Errorf("a master has owner %q, %v; the file says %q", owner, err, l.Owner)
		}
	}
	masters[0].Kill()
	if got, err := Release(t.Context(), c, "somebody-else", "test"); err != nil || got.Was || got.Holder != "a" {
		t.Errorf("released for another owner: %+v, %v", got, err)
	}
	if got, err := Release(t.Context(), c, l.Owner, "test"); err != nil || !got.Was {
		t.Errorf("released: %+v, %v", got, err)
	}
}

// stub is an election that says what a test tells it to.
type stub struct {
	election // what a test does not expect panics
	picture  redislock.Picture
	err      error
	asked    func(owner string)
}

func (s stub) Picture(context.Context, int) (redislock.Picture, error) { return s.picture, s.err }

func (s stub) StepDownOwner(_ context.Context, owner, _, _ string) error {
	if s.asked != nil {
		s.asked(owner)
	}
	return s.err
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ledBy(owner, leader string, epoch int64) redislock.Picture {
	p := redislock.Picture{Now: noon, Owner: owner, Leader: leader, Epoch: epoch}
	if owner != "" {
		p.Left = time.Second
	}
	return p
}

func TestWhatAMajorityOfMastersSaysIsTheElection(t *testing.T) {
	away := errors.New("connection refused")
	for _, c := range []struct {
		name          string
		pictures      []redislock.Picture
		owner, leader string
		epoch         int64
	}{
		{"all agree", []redislock.Picture{ledBy("o1", "a", 7), ledBy("o1", "a", 7), ledBy("o1", "a", 7)}, "o1", "a", 7},
		{"one has a rival", []redislock.Picture{ledBy("o2", "b", 9), ledBy("o1", "a", 7), ledBy("o1", "a", 7)}, "o1", "a", 7},
		{"one has a higher epoch of the same term", []redislock.Picture{ledBy("o1", "a", 7), ledBy("o1", "a", 8), ledBy("", "", 3)}, "o1", "a", 8},
		{"rivals", []redislock.Picture{ledBy("o1", "a", 7), ledBy("o2", "b", 8), ledBy("o3", "c", 9)}, "", "", 9},
		{"nobody", []redislock.Picture{ledBy("", "", 7), ledBy("", "", 8), ledBy("o1", "a", 6)}, "", "", 8},
		{"one is away", []redislock.Picture{ledBy("o1", "a", 7), ledBy("o1", "a", 7)}, "o1", "a", 7},
		{"a foreign client", []redislock.Picture{ledBy("x", "", 0), ledBy("x", "", 0), ledBy("x", "", 0)}, "x", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := elections{stub{err: away}, stub{err: away}, stub{err: away}}
			for i, p := range c.pictures {
				all[i] = stub{picture: p}
			}
			p, err := all.Picture(t.Context(), 5)
			if err != nil || p.Owner != c.owner || p.Leader != c.leader || p.Epoch != c.epoch || (p.Owner == "") != (p.Left == 0) {
				t.Errorf("%+v, %v", p, err)
			}
			_, leader, err := all.StepDown(t.Context(), "", "")
			if (c.owner == "") != errors.Is(err, redislock.ErrNobodyLeads) || leader != c.leader {
				t.Errorf("step down: %q, %v", leader, err)
			}
		})
	}
	if _, err := (elections{stub{picture: ledBy("o1", "a", 7)}, stub{err: away}, stub{err: away}}).Picture(t.Context(), 5); !errors.Is(err, away) {
		t.Errorf("two of three away: %v", err)
	}
}

// A master that is slow hears of a step-down when the successor may hold the lock there, who
// must not obey.
func TestAStepDownIsOfOneTermOnAllMasters(t *testing.T) {
	var owners atomic.Int64
	asked := func(owner string) {
		if owner != "o1" {
			t.Errorf("the leader of term %q is asked", owner)
		}
		owners.Add(1)
	}
	all := elections{
		stub{picture: ledBy("o1", "a", 7), asked: asked}, stub{picture: ledBy("o1", "a", 7), asked: asked},
		stub{picture: ledBy("o2", "b", 8), asked: asked, err: redislock.ErrNobodyLeads},
	}
	if owner, leader, err := all.StepDown(t.Context(), "", "test"); owner != "o1" || leader != "a" || err != nil || owners.Load() != 3 {
		t.Errorf("asked %q on %q by way of %d masters, %v", owner, leader, owners.Load(), err)
	}
}

func TestNodesAreSeenByWhicheverMasterHeardOfThemLast(t *testing.T) {
	node := func(id string, ago time.Duration, state string, now time.Time) redislock.Node {
		return redislock.Node{ID: id, State: state, SeenMS: now.Add(-ago).UnixMilli()}
	}
	ahead := noon.Add(time.Hour) // one master's clock
	p, err := elections{
		stub{picture: redislock.Picture{Now: noon, Nodes: []redislock.Node{node("a", time.Minute, "leading", noon), node("b", time.Second, "standby", noon)}}},
		stub{picture: redislock.Picture{Now: ahead, Nodes: []redislock.Node{node("a", 2*time.Second, "standby", ahead), node("c", 3*time.Second, "standby", ahead)}}},
		stub{picture: redislock.Picture{Now: noon}},
	}.Picture(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, n := range p.Nodes {
		seen[n.ID] = n.State + " " + p.Now.Sub(n.Seen()).String()
	}
	if diff := cmp.Diff(map[string]string{"a": "standby 2s", "b": "standby 1s", "c": "standby 3s"}, seen); diff != "" {
		t.Error(diff)
	}
}

func TestAPauseOrQuarantineCountsOnceNobodyCanWinAgainstIt(t *testing.T) {
	with := func(paused bool, quarantine time.Duration, stepDown string) stub {
		s := stub{picture: redislock.Picture{Now: noon, Control: redislock.Control{Quarantine: quarantine, StepDown: stepDown}}}
		if paused {
			s.picture.Paused = &redislock.Pause{Reason: "by alice"}
		}
		return s
	}
	for _, c := range []struct {
		name       string
		masters    elections
		paused     bool
		quarantine time.Duration
		stepDown   string
	}{
		{"one of three", elections{with(true, time.Second, "by bob"), with(false, 0, ""), with(false, 0, "")}, false, 0, "by bob"},
		{"two of three", elections{with(true, 3*time.Second, ""), with(true, time.Second, ""), with(false, 0, "")}, true, time.Second, ""},
		{"all", elections{with(true, 3*time.Second, ""), with(true, time.Second, ""), with(true, 2*time.Second, "")}, true, 2 * time.Second, ""},
	} {
		p, err := c.masters.Picture(t.Context(), 0)
		if err != nil || (p.Paused != nil) != c.paused || p.Quarantine != c.quarantine || p.StepDown != c.stepDown {
			t.Errorf("%s: %+v, %v", c.name, p.Control, err)
		}
	}
}

func TestTermsThatNoMajorityGrantedAreNotHistory(t *testing.T) {
	ev := func(event, node string, epoch int64) redislock.Event {
		return redislock.Event{Event: event, NodeID: node, Epoch: epoch}
	}
	all := []redislock.Event{ // newest first
		ev("won", "a", 9), ev("withdrawn", "b", 8), ev("withdrawn", "a", 7), ev("won", "b", 8), ev("won", "a", 7), ev("released", "a", 6), ev("won", "a", 6),
	}
	want := []redislock.Event{ev("won", "a", 9), ev("released", "a", 6), ev("won", "a", 6)}
	if diff := cmp.Diff(want, settled(all, 10)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[:2], settled(all, 2)); diff != "" {
		t.Error(diff)
	}
}
