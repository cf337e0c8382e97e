package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestChartIsWellFormedAndShowsEveryContender(t *testing.T) {
	b := &bench{options: options{ttls: []time.Duration{2 * time.Second, 10 * time.Second}}, results: map[result]*outcome{}}
	for i, c := range contenders() {
		o := &outcome{handovers: []time.Duration{time.Duration(i) * time.Millisecond}, failovers: []time.Duration{2 * time.Second}, cost: cost{inRedis: 20}}
		o.freezes, o.recovered = []clash{{never: i == 2}}, []recovery{{never: i == 3}}
		b.results[result{c.name, b.options.ttls[0]}] = o
	}
	chart := b.chart()
	for decoder := xml.NewDecoder(strings.NewReader(chart)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range contenders() {
		if !c.daemon && !strings.Contains(chart, ">"+c.title+"<") {
			t.Errorf("%s is not in the chart", c.title)
		}
	}
	if !strings.Contains(chart, "no end") {
		t.Error("what has no end is not told")
	}
}
