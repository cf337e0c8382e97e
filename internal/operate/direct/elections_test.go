package direct

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/operate"
	"baton/internal/redislock"
)

// handed is an election whose leader steps down, so that the leader in then follows.
type handed struct {
	site.Election
	now, then redislock.ElectionState
}

func (h *handed) State(context.Context, int) (redislock.ElectionState, error) { return h.now, nil }

func (h *handed) StepDown(context.Context, string, string) (owner, nodeID string, err error) {
	before := h.now
	h.now = h.then
	return before.Owner, before.Leader, nil
}

func TestAStepDownTellsWhereTheLeadWent(t *testing.T) {
	now := time.Now()
	led := redislock.ElectionState{Owner: "1", Leader: "a", Epoch: 1, Now: now}
	for _, id := range []string{"a", "b", "c", "tired"} {
		led.Nodes = append(led.Nodes, redislock.Node{ID: id, SeenMS: now.UnixMilli()})
	}
	led.CoolDowns = map[string]redislock.CoolDown{"tired": {Left: time.Minute, Reason: "database away"}}
	for _, tc := range []struct {
		to   string
		then redislock.ElectionState
		from string
		want string
	}{
		{"b", redislock.ElectionState{Owner: "2", Leader: "b", Epoch: 2}, "a", ""},
		{"", redislock.ElectionState{Owner: "2", Leader: "c", Epoch: 2}, "a", ""},
		{"b", redislock.ElectionState{Owner: "2", Leader: "c", Epoch: 2}, "a", "c leads after a, and not b"},
		{"b", redislock.ElectionState{}, "a", "no node has taken over"},
		{"", led, "a", "that node may be finishing its jobs"},
		{"tired", redislock.ElectionState{}, "", `node "tired" cannot take the lock now: it lets other nodes lead for another 1m: database away`},
	} {
		l := session{election: &handed{now: led, then: tc.then}}
		h, err := stepDown(t.Context(), l, operate.Order{To: tc.to, By: "test"}, time.Millisecond)
		told := ""
		if err != nil {
			told = err.Error()
		}
		if h.From != tc.from || !strings.Contains(told, tc.want) || (told == "") != (tc.want == "") || h.NodeID != tc.then.Leader && tc.then.Owner == "2" {
			t.Errorf("to %q, then %q leads: %+v, %v", tc.to, tc.then.Leader, h, err)
		}
	}
}

func TestADrillNeedsANodeThatWouldTakeOver(t *testing.T) {
	now := time.Now()
	p := redislock.ElectionState{Owner: "1", Leader: "a", Epoch: 1, Now: now, Control: redislock.Control{CoolDowns: map[string]redislock.CoolDown{"tired": {Left: time.Minute}}}}
	for id, observer := range map[string]bool{"a": false, "tired": false, "observer": true} {
		p.Nodes = append(p.Nodes, redislock.Node{ID: id, SeenMS: now.UnixMilli(), NodeInfo: redislock.NodeInfo{Observer: observer}})
	}
	p.Nodes = append(p.Nodes, redislock.Node{ID: "gone", SeenMS: 1})
	l := session{election: &handed{now: p}}
	if _, err := l.drills(t.Context(), operate.Order{By: "test", Wait: time.Millisecond}, 1, false); !errors.Is(err, ErrNoOtherNode) {
		t.Errorf("drilled: %v", err)
	}
}
