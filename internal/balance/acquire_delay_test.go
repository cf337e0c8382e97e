package balance

import (
	"fmt"
	"testing"
	"time"
)

func TestAcquireDelayGrowsWithWhatANodeLeads(t *testing.T) {
	h := newHosts(1, map[string][]string{"x": locksNamed("x", 9)})
	for _, id := range []string{"a", "b", "c"} {
		h.join(id, "x", 0)
	}
	for _, lock := range h.locks["x"] {
		h.leader[lock] = "b" // its node may be dead
	}
	s := h.look(h.up["a"])
	s.complete(func(string, time.Time) bool { return false })
	led := map[string]bool{}
	last := time.Duration(0)
	for i, lock := range h.locks["x"] {
		d := acquireDelayFor("a", "x8", rolesOf(h.locks["x"], led), s)
		switch {
		case i < 3 && d != 0:
			t.Errorf("leads %d of 9, of which 3 are its share: %v", i, d)
		case i >= 3 && (d < shortestAcquireDelay || d > longestAcquireDelay || d < last):
			t.Errorf("leads %d: %v after %v", i, d, last)
		}
		last = d
		led[lock] = true
	}
	if last != longestAcquireDelay {
		t.Errorf("leads 8 of 9: %v", last)
	}
	alone := h.look(h.up["a"])
	alone.complete(func(id string, _ time.Time) bool { return id != "a" })
	if d := acquireDelayFor("a", "x8", rolesOf(h.locks["x"], led), alone); d != 0 {
		t.Errorf("deferring to nobody: %v", d)
	}
}

// A crash must not cost more time than necessary. A node that already leads a lock leaves a free lock to others only if a node exists that
// leads fewer locks. The node that has just lost the lock does not count.
func TestAcquireDelayNeedsSomebodyWhoLeadsLess(t *testing.T) {
	for _, c := range []struct {
		name    string
		leaders map[string]string // the leaders of x0, x1, x2; x2 becomes free
		others  []string
		least   time.Duration
		most    time.Duration
	}{
		{"the other of two died", map[string]string{"x0": "a", "x1": "a", "x2": "b"}, []string{"b"}, 0, acquireDelayStep},
		{"who is left leads as many", map[string]string{"x0": "a", "x1": "b", "x2": "c"}, []string{"b", "c"}, 0, acquireDelayStep},
		{"who is left leads more", map[string]string{"x0": "b", "x1": "b", "x2": "c"}, []string{"b", "c"}, 0, 0},
		{"somebody is idle", map[string]string{"x0": "a", "x1": "b", "x2": "c"}, []string{"b", "c", "d"}, shortestAcquireDelay, longestAcquireDelay},
		{"the same, and no node led it", map[string]string{"x0": "a", "x1": "b"}, []string{"b", "c"}, shortestAcquireDelay, longestAcquireDelay},
	} {
		h := newHosts(1, map[string][]string{"x": locksNamed("x", 3)})
		for _, id := range append([]string{"a"}, c.others...) {
			h.join(id, "x", 0)
		}
		h.leader = c.leaders
		s := h.look(h.up["a"])
		s.complete(func(string, time.Time) bool { return false })
		led := map[string]bool{"x0": c.leaders["x0"] == "a", "x1": c.leaders["x1"] == "a"}
		if d := acquireDelayFor("a", "x2", rolesOf(h.locks["x"], led), s); d < c.least || d > c.most {
			t.Errorf("%s: %v, want %v to %v", c.name, d, c.least, c.most)
		}
	}
}

// At the start all locks are free and no node knows the state. Then no node may ask for all locks at once.
func TestManyFreeLocksAreAskedForOneAfterTheOther(t *testing.T) {
	keys := locksNamed("x", 6)
	orders := map[string]bool{}
	for _, id := range []string{"a", "b", "c", "d"} {
		order := make([]string, 8)
		for _, key := range keys {
			order[acquireDelayFor(id, key, rolesOf(keys, nil), nil)/acquireDelayStep] += key
		}
		orders[fmt.Sprint(order)] = true
		for i, key := range order[:6] {
			if len(key) != 2 {
				t.Errorf("%s asks at step %d for %q", id, i, key)
			}
		}
	}
	if len(orders) < 3 {
		t.Errorf("nodes ask in the same order: %v", orders)
	}
}

// A node that was ordered to step down leaves locks to others for a while. It does not leave a lock to a node that is dead, because after a
// crash the lock must not stay free.
func TestWhoSteppedDownByOrderIsDeferringToTheLivingOnly(t *testing.T) {
	for _, c := range []struct {
		name    string
		others  []string
		lost    string // the node that led the lock that is now free
		waiting time.Duration
	}{
		{"the other of two died", []string{"b"}, "b", 0},
		{"it led it itself", []string{"b"}, "a", longestAcquireDelay},
		{"one of two others died", []string{"b", "c"}, "b", longestAcquireDelay},
	} {
		h := newHosts(1, map[string][]string{"x": locksNamed("x", 2)})
		for _, id := range append([]string{"a"}, c.others...) {
			h.join(id, "x", 0)
		}
		h.leader = map[string]string{"x0": "a", "x1": c.lost}
		s := h.look(h.up["a"])
		for i := range s.candidacies {
			for j := range s.candidacies[i].nodes {
				n := &s.candidacies[i].nodes[j]
				n.Reluctant = n.ID == "a"
			}
		}
		s.complete(func(string, time.Time) bool { return false })
		if d := acquireDelayFor("a", "x1", rolesOf(h.locks["x"], map[string]bool{"x0": true}), s); d != c.waiting {
			t.Errorf("%s: %v, want %v", c.name, d, c.waiting)
		}
	}
}
