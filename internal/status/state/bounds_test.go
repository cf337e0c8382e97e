package state

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/statustest"
)

// TestBoundsHoldForEachKindOfValue checks the bounds of all kinds of values: names, texts, lists, and numbers such as NaN.
func TestBoundsHoldForEachKindOfValue(t *testing.T) {
	long := strings.Repeat("ü", operate.MostProse)
	s := diagnose.Snapshot{Events: make([]diagnose.Event, operate.MostListed+5), Jobs: make([]diagnose.Job,
		operate.MostListed+5), NodeID: long}
	s.Events[0] = diagnose.Event{NodeID: long, Reason: long}
	for _, lag := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		s.Jobs[0].LagSeconds = &lag
		got := operate.Bounded(s)
		if len(got.Events) != operate.MostListed || len(got.Jobs) != operate.MostListed+5 || *got.Jobs[0].LagSeconds != 0 {
			t.Errorf("%d events, %d jobs, a lag of %v", len(got.Events), len(got.Jobs), *got.Jobs[0].LagSeconds)
		}
		if e := got.Events[0]; len(e.NodeID) > operate.MostName+8 || len(e.Reason) > operate.MostProse+8 ||
			len(e.Reason) < operate.MostProse-8 || len(got.NodeID) > operate.MostName+8 {
			t.Errorf("a name of %d bytes, a text of %d", len(e.NodeID), len(e.Reason))
		}
	}
	at := time.Now()
	d := boundedNode{&statustest.FakeNode{Measured: []operate.Sample{
		{At: at, Jobs: map[string]operate.Level{strings.Repeat("x", operate.MostName+1): {}}}, {At: at,
			Jobs: map[string]operate.Level{"a": {LagSeconds: math.Inf(1)}}},
		{At: at, Jobs: map[string]operate.Level{"a": {LagSeconds: math.NaN()}}},
		{Jobs: map[string]operate.Level{"zero": {}}}, {At: at, Jobs: map[string]operate.Level{strings.Repeat("x",
			operate.MostName): {LagSeconds: 1}}},
	}}}
	if all, err := d.Samples(t.Context(), time.Time{}); err != nil || len(all) != 1 || len(all[0].Jobs) != 1 {
		t.Errorf("%d samples, %v", len(all), err)
	}
}

// TestBoundsChangeNoMapOfTheNode checks that two pages can ask at the same time, although each of them bounds its answer.
func TestBoundsChangeNoMapOfTheNode(t *testing.T) {
	shelf := &statustest.FakeNode{Latest: map[string][]operate.Brief{"a": make([]operate.Brief, operate.MostListed+1)},
		OtherEvents: map[string][]diagnose.Event{"b": make([]diagnose.Event, operate.MostListed+1)}}
	d := boundedNode{shelf}
	runs, err := d.Recent(t.Context())
	if err != nil || len(runs["a"]) != operate.MostListed || len(shelf.Latest["a"]) != operate.MostListed+1 {
		t.Errorf("%d runs, and %d of the node, %v", len(runs["a"]), len(shelf.Latest["a"]), err)
	}
	events, err := d.LockEvents(t.Context(), operate.MostListed+1)
	if err != nil || len(events["b"]) != operate.MostListed || len(shelf.OtherEvents["b"]) != operate.MostListed+1 {
		t.Errorf("%d events, and %d of the node, %v", len(events["b"]), len(shelf.OtherEvents["b"]), err)
	}
}

func TestAStreamTellsOfAnAbsurdStateInJSON(t *testing.T) {
	u := newUpdate(operate.Bounded(statustest.Absurd(time.Now())), true, nil)
	if !json.Valid(u.Full) || !json.Valid(u.Public) {
		t.Error("a stream would tell what is no JSON")
	}
}
