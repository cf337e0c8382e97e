package site

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"baton/internal/elector"
	"baton/internal/redislock"
)

// stub is an election with answers that a test sets.
type stub struct {
	Election // an unexpected call panics
	state    redislock.ElectionState
	err      error
	asked    func(owner string)
}

func (s stub) State(context.Context, int) (redislock.ElectionState, error) { return s.state, s.err }

func (s stub) StepDownOwner(_ context.Context, owner string, _ elector.Order) error {
	if s.asked != nil {
		s.asked(owner)
	}
	return s.err
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ledBy(owner, leader string, epoch int64) redislock.ElectionState {
	p := redislock.ElectionState{Now: noon, Owner: owner, Leader: leader, Epoch: epoch}
	if owner != "" {
		p.Left = time.Second
	}
	return p
}

func TestWhatAMajorityOfMastersSaysIsTheElection(t *testing.T) {
	away := errors.New("connection refused")
	for _, c := range []struct {
		name          string
		pictures      []redislock.ElectionState
		owner, leader string
		epoch         int64
	}{
		{"all agree", []redislock.ElectionState{ledBy("o1", "a", 7), ledBy("o1", "a", 7), ledBy("o1", "a", 7)}, "o1", "a", 7},
		{"one has a rival", []redislock.ElectionState{ledBy("o2", "b", 9), ledBy("o1", "a", 7), ledBy("o1", "a", 7)}, "o1", "a", 7},
		{"one has a higher epoch of the same term", []redislock.ElectionState{ledBy("o1", "a", 7), ledBy("o1", "a", 8), ledBy("", "", 3)}, "o1", "a", 8},
		{"rivals", []redislock.ElectionState{ledBy("o1", "a", 7), ledBy("o2", "b", 8), ledBy("o3", "c", 9)}, "", "", 9},
		{"nobody", []redislock.ElectionState{ledBy("", "", 7), ledBy("", "", 8), ledBy("o1", "a", 6)}, "", "", 8},
		{"one is away", []redislock.ElectionState{ledBy("o1", "a", 7), ledBy("o1", "a", 7)}, "o1", "a", 7},
		{"a foreign client", []redislock.ElectionState{ledBy("x", "", 0), ledBy("x", "", 0), ledBy("x", "", 0)}, "x", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := elections{stub{err: away}, stub{err: away}, stub{err: away}}
			for i, p := range c.pictures {
				all[i] = stub{state: p}
			}
			p, err := all.State(t.Context(), 5)
			if err != nil || p.Owner != c.owner || p.Leader != c.leader || p.Epoch != c.epoch || (p.Owner == "") != (p.Left == 0) {
				t.Errorf("%+v, %v", p, err)
			}
			_, leader, err := all.StepDown(t.Context(), "", "")
			if (c.owner == "") != errors.Is(err, redislock.ErrNoLeader) || leader != c.leader {
				t.Errorf("step down: %q, %v", leader, err)
			}
		})
	}
	if _, err := (elections{stub{state: ledBy("o1", "a", 7)}, stub{err: away}, stub{err: away}}).State(t.Context(), 5); !errors.Is(err, away) {
		t.Errorf("two of three away: %v", err)
	}
}

// A slow master may receive a step-down when the successor already holds the lock there. The successor must not obey this order.
func TestAStepDownIsOfOneTermOnAllMasters(t *testing.T) {
	var owners atomic.Int64
	asked := func(owner string) {
		if owner != "o1" {
			t.Errorf("the leader of term %q is asked", owner)
		}
		owners.Add(1)
	}
	all := elections{
		stub{state: ledBy("o1", "a", 7), asked: asked}, stub{state: ledBy("o1", "a", 7), asked: asked},
		stub{state: ledBy("o2", "b", 8), asked: asked, err: redislock.ErrNoLeader},
	}
	if owner, leader, err := all.StepDown(t.Context(), "", "test"); owner != "o1" || leader != "a" || err != nil || owners.Load() != 3 {
		t.Errorf("asked %q on %q by way of %d masters, %v", owner, leader, owners.Load(), err)
	}
}

func TestNodesAreSeenByWhicheverMasterHeardOfThemLast(t *testing.T) {
	node := func(id string, ago time.Duration, state string, now time.Time) redislock.Node {
		return redislock.Node{ID: id, State: state, SeenMS: now.Add(-ago).UnixMilli()}
	}
	ahead := noon.Add(time.Hour) // the clock of one master
	p, err := elections{
		stub{state: redislock.ElectionState{Now: noon, Nodes: []redislock.Node{node("a", time.Minute, "leading", noon), node("b", time.Second, "standby", noon)}}},
		stub{state: redislock.ElectionState{Now: ahead, Nodes: []redislock.Node{node("a", 2*time.Second, "standby", ahead), node("c", 3*time.Second, "standby", ahead)}}},
		stub{state: redislock.ElectionState{Now: noon}},
	}.State(t.Context(), 0)
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
		s := stub{state: redislock.ElectionState{Now: noon, Control: redislock.Control{Quarantine: quarantine, StepDown: stepDown}}}
		if paused {
			s.state.Paused = &redislock.Pause{Reason: "by alice"}
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
		p, err := c.masters.State(t.Context(), 0)
		if err != nil || (p.Paused != nil) != c.paused || p.Quarantine != c.quarantine || p.StepDown != c.stepDown {
			t.Errorf("%s: %+v, %v", c.name, p.Control, err)
		}
	}
}

func TestTermsThatNoMajorityGrantedAreNotHistory(t *testing.T) {
	ev := func(event, node string, epoch int64) redislock.Event {
		return redislock.Event{Event: event, NodeID: node, Epoch: epoch}
	}
	all := []redislock.Event{ // the newest event first
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
