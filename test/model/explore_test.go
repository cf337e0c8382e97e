package model

import (
	"errors"
	"testing"
)

// counters is a protocol of three nodes that count up to three. The promise is that their sum is not the field forbidden.
type counters struct{ forbidden int }

func (counters) Start() [maxNodes]int { return [maxNodes]int{} }

func (counters) Steps(s [maxNodes]int, into []Step[[maxNodes]int]) []Step[[maxNodes]int] {
	for i := range s {
		if to := s; to[i] < 3 {
			to[i]++
			into = append(into, Step[[maxNodes]int]{To: to, Node: int8(i)})
		}
	}
	return into
}

func (counters) Canonical(s [maxNodes]int) ([maxNodes]int, Order) {
	o := sameOrder
	for i := range s {
		for j := range i {
			if s[i] < s[j] {
				s[i], s[j], o[i], o[j] = s[j], s[i], o[j], o[i]
			}
		}
	}
	return s, o
}

func (p counters) Broken(s [maxNodes]int) string {
	if s[0]+s[1]+s[2] == p.forbidden {
		return "the sum is forbidden"
	}
	return ""
}

func TestExploreVisitsEachStateOnceAndFindsTheShortestPath(t *testing.T) {
	e, err := Explore(counters{-1}, 100)
	if err != nil || e.States() != 20 || e.Depth != 9 || e.Broken != "" {
		t.Errorf("%d states, depth %d, %q, %v; want 20 multisets of three counters, and depth 9", e.States(), e.Depth, e.Broken, err)
	}
	if _, err := Explore(counters{-1}, 19); !errors.Is(err, ErrTooMany) {
		t.Errorf("%v; want an error, because there are 20 states", err)
	}
	e, err = Explore(counters{5}, 100)
	if err != nil || e.Broken == "" || len(e.Path) != 5 {
		t.Fatalf("%q after %d steps, %v; want the sum 5 after 5 steps", e.Broken, len(e.Path), err)
	}
	// The names of the nodes must stay the same through all renaming.
	var counted [maxNodes]int
	for _, turn := range e.Path {
		for i, n := range turn.From {
			if counted[turn.Names[i]] != n {
				t.Fatalf("a node changes its name in the path: %+v", e.Path)
			}
		}
		counted[turn.Names[turn.Step.Node]]++
	}
}

func TestStuckFindsADeadEnd(t *testing.T) {
	p := counters{-1}
	e, err := Explore(p, 100)
	if err != nil {
		t.Fatal(err)
	}
	all := func(n int) func([maxNodes]int) bool {
		return func(s [maxNodes]int) bool { return s == [maxNodes]int{n, n, n} }
	}
	if e.Stuck(p, p, all(3), 100) {
		t.Errorf("stuck after %d steps; every state leads to three threes", len(e.Path))
	}
	if !e.Stuck(p, p, all(2), 100) || len(e.Path) != 3 {
		t.Errorf("a dead end after %d steps; want one after 3 steps, because no counter falls from 3 to 2", len(e.Path))
	}
}
