package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// The test checks that every two values of two factors that occur together in the whole grid also occur together in the selection.
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

func TestTheGridIsDrawn(t *testing.T) {
	var all []outcome
	for _, c := range pairwise(allCells()) {
		all = append(all, outcome{c, 0.9, 1.1})
	}
	svg := drawGrid(all)
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	// Each database has two panels with a dot for each cell, and the legend has five dots.
	if got, want := strings.Count(svg, "<circle"), 2*len(all)+5; got != want {
		t.Errorf("%d dots, want %d", got, want)
	}
	if got := strings.Count(svg, "<polyline"); got != 6 {
		t.Errorf("%d lines", got)
	}
}
