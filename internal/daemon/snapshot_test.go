package daemon

import (
	"testing"

	"baton/internal/status"
)

func TestTheNodeThatAnswersIsSeenNow(t *testing.T) {
	nodes := []status.Node{{ID: "a", LastSeenMSAgo: 29_000}, {ID: "b", LastSeenMSAgo: 28_000}}
	answers(nodes, "b")
	if nodes[0].LastSeenMSAgo != 29_000 || nodes[1].LastSeenMSAgo != 0 {
		t.Errorf("%+v", nodes)
	}
	for _, n := range []status.Node{{ID: "a", LastSeenMSAgo: 70_000, Stale: true}, {ID: "a", LastSeenMSAgo: 9_000, Twin: "other"}} {
		nodes := []status.Node{n}
		if answers(nodes, "a"); nodes[0] != n {
			t.Errorf("it hides that something is wrong: %+v", nodes)
		}
	}
}
