package main

import "testing"

// The selection has every two values of two factors together that the whole grid has.
func TestPairwiseCoversAllPairs(t *testing.T) {
	covered, usual := map[string]bool{}, map[string]bool{}
	few := pairwise(allCells())
	for _, c := range few {
		for _, p := range c.pairs() {
			covered[p] = true
		}
		if c.table == usualSize {
			usual[c.source+c.driver] = true
		}
	}
	for _, c := range allCells() {
		for _, p := range c.pairs() {
			if !covered[p] {
				t.Errorf("no cell has %s of %v", p, c)
			}
		}
		if !usual[c.source+c.driver] {
			t.Errorf("%s is not measured in %s over %d rows", c.source, c.driver, usualSize)
		}
	}
	if len(few) > 50 {
		t.Errorf("%d cells take too long", len(few))
	}
	t.Logf("%d cells of %d", len(few), len(allCells()))
}
