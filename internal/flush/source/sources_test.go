package source

import (
	"context"
	"slices"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/flush/source/spec"
)

// The policy of a source has the defaults that the documentation names.
func TestASourceSaysWhatItLeavesToItsJob(t *testing.T) {
	hashes := Options{Type: "hashes", Key: "user:<id>"}
	scan := Options{Type: "scan", Key: "user:<id>", Value: "hash"}
	capture := Options{Type: "capture", Key: "user:<id>", Value: "hash"}
	totals := Options{Type: "counters", Key: "totals", Watermark: true, Rows: 7, OnDecrease: "restart"}
	with := func(o Options, change func(*Options)) Options { change(&o); return o }
	for _, c := range []struct {
		options Options
		want    flush.Policy
	}{
		{Options{Type: "counters", Key: "views", OnMissing: "null", Vanished: "delete", OnDecrease: "restart"}, flush.Policy{}},
		{Options{Type: "list", Key: "queue"}, flush.Policy{}},
		{Options{Type: "stream", Key: "events"}, flush.Policy{}},
		{hashes, flush.Policy{OnMissing: mapping.MissingDelete}},
		{with(hashes, func(o *Options) { o.OnMissing = "null" }), flush.Policy{OnMissing: mapping.MissingNull}},
		{scan, flush.Policy{}},
		{with(scan, func(o *Options) { o.Vanished, o.MaxPct = "ignore", 50 }), flush.Policy{}},
		{with(scan, func(o *Options) { o.Vanished = "delete" }), flush.Policy{VanishedPct: 10}},
		{with(scan, func(o *Options) { o.Vanished, o.MaxPct = "delete", 50 }), flush.Policy{VanishedPct: 50}},
		{capture, flush.Policy{OnMissing: mapping.MissingDelete, VanishedPct: 10}},
		{with(capture, func(o *Options) { o.MaxPct = 50 }), flush.Policy{OnMissing: mapping.MissingDelete, VanishedPct: 50}},
		{with(capture, func(o *Options) { o.OnMissing = "null" }), flush.Policy{OnMissing: mapping.MissingNull, VanishedPct: 10}},
		{with(capture, func(o *Options) { o.OnMissing, o.MaxPct = "ignore", 50 }), flush.Policy{OnMissing: mapping.MissingIgnore}},
		{totals, flush.Policy{BatchRows: 7, OnDecrease: flush.DecreaseRestart}},
		{with(totals, func(o *Options) { o.Key = "total:<page>" }), flush.Policy{BatchRows: 7, OnDecrease: flush.DecreaseRestart}},
	} {
		if got, err := Describe(c.options); err != nil || got.Policy != c.want {
			t.Errorf("%+v: policy %+v, %v; want %+v", c.options, got.Policy, err, c.want)
		}
	}
	_, err := Describe(with(scan, func(o *Options) { o.Vanished = "perhaps" }))
	if err == nil || !strings.Contains(err.Error(), `vanished: "perhaps"`) {
		t.Error(err)
	}
}

// The byte that stands for a capture in the key of rows can be in no key of a configuration.
func TestANULInAKeyIsAByteOfIt(t *testing.T) {
	for _, kind := range []string{"counters", "list"} {
		d, err := Describe(Options{Type: kind, Key: "a\x00b", Job: "j"})
		if err != nil {
			t.Fatal(err)
		}
		if keys := d.IdleKeys(); !slices.Contains(keys, "a\x00b") {
			t.Errorf("%s: idle keys %q", kind, keys)
		}
	}
}

func TestEveryKindHasItsSource(t *testing.T) {
	var names, sources []string
	for _, k := range spec.Kinds() {
		names = append(names, k.Name)
	}
	for _, s := range Sources() {
		sources = append(sources, s.Name)
	}
	slices.Sort(names)
	slices.Sort(sources)
	if !slices.Equal(names, sources) {
		t.Errorf("kinds %q, sources %q", names, sources)
	}
}

// The description of a kind without Redis must match its source.
func TestAKindIsWhatItsSourceDoes(t *testing.T) {
	for _, s := range Sources() {
		inputs, err := s.inputs(conformances[s.Name].options)
		if err != nil {
			t.Fatal(err)
		}
		guarantee, delivers := inputs.Guarantee, spec.States
		switch {
		case guarantee.Once() && inputs.Fields:
			delivers = spec.Events
		case guarantee.Once():
			delivers = spec.Increments
		}
		looks := guarantee == row.ByPass || guarantee == row.ByMark
		if s.Delivers != delivers || s.Looks != looks || s.Keeps != (looks || guarantee.Placed()) ||
			s.Watermark != (guarantee == row.ByMark) {
			t.Errorf("%+v, and its source %+v", s.Kind, inputs)
		}
		// A dead letter of states is replayed by reading the record again.
		o := conformances[s.Name].options
		o.Job = "j"
		source, err := s.open(openStore(t, "redis://127.0.0.1:1"), o.Key, o, conformances[s.Name].inputs)
		if err != nil {
			t.Fatal(err)
		}
		_, marks := source.(interface {
			Mark(ctx context.Context, newID string, ids []string) error
		})
		if marks != (delivers == spec.States && !looks) {
			t.Errorf("%s: has Mark: %v", s.Name, marks)
		}
	}
}
