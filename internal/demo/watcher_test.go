package demo

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// step is an event that the watcher sees or is told. after is the time since the last step in milliseconds.
type step struct {
	after int
	what  string // "lock OWNER NODE", "free", "down NODE" or "up NODE"
	node  string
	owner string
}

func TestFailoverIsFromTheLeadersEndToTheNextTerm(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []step
		terms int
		want  []int // in milliseconds
	}{
		{"first term is none", []step{{0, "lock", "n1", "A"}}, 1, nil},
		{"death", []step{{0, "lock", "n1", "A"}, {10, "down", "n1", ""}, {900, "lock", "n1", "A"}, {700, "free", "", ""}, {5, "lock", "n2", "B"}}, 2, []int{1605}},
		{"death of a standby", []step{{0, "lock", "n1", "A"}, {10, "down", "n2", ""}, {900, "lock", "n1", "A"}, {9, "lock", "n2", "B"}}, 2, nil},
		{"handover in order", []step{{0, "lock", "n1", "A"}, {10, "free", "", ""}, {9, "lock", "n2", "B"}, {9, "down", "n1", ""}}, 2, nil},
		{"the same node comes back", []step{{0, "lock", "n1", "A"}, {10, "down", "n1", ""}, {1500, "lock", "n1", "B"}}, 2, []int{1500}},
		{"frozen, and awake in time", []step{{0, "lock", "n1", "A"}, {10, "down", "n1", ""}, {300, "up", "n1", ""}, {90, "lock", "n1", "A"}, {500, "lock", "n2", "B"}}, 2, nil},
		{"frozen, and awake too late", []step{{0, "lock", "n1", "A"}, {10, "down", "n1", ""}, {2000, "free", "", ""}, {1, "up", "n1", ""}, {5, "lock", "n1", "B"}}, 2, []int{2006}},
		{"noticed twice", []step{{0, "lock", "n1", "A"}, {10, "down", "n1", ""}, {50, "down", "n1", ""}, {100, "lock", "n2", "B"}}, 2, []int{150}},
		{"two in a row", []step{{0, "lock", "n1", "A"}, {10, "down", "n1", ""}, {100, "lock", "n2", "B"}, {1, "down", "n2", ""}, {200, "lock", "n3", "C"}}, 3, []int{100, 200}},
		{"never ends", []step{{0, "lock", "n1", "A"}, {10, "down", "n1", ""}, {100, "free", "", ""}}, 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWatcher(nil, &eventLog{})
			now := time.Now()
			for _, s := range c.steps {
				now = now.Add(time.Duration(s.after) * time.Millisecond)
				switch s.what {
				case "lock":
					w.saw(moment{owner: s.owner, node: s.node}, now)
				case "free":
					w.saw(moment{}, now)
				case "down":
					w.down(s.node, now, syscall.SIGKILL)
				case "up":
					w.up(s.node)
				}
			}
			_, terms, times, _ := w.state()
			var got []int
			for _, d := range times {
				got = append(got, int(d.Milliseconds()))
			}
			if terms != c.terms || !slices.Equal(got, c.want) {
				t.Errorf("%d terms, failovers %v; want %d, %v", terms, got, c.terms, c.want)
			}
		})
	}
}
