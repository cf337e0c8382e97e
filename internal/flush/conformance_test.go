package flush_test

import (
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/row"
)

// observed returns a job that calls observe at every step: see flushtest.Observed.
func observed(cfg flush.Config, observe func(string) error) flush.Config {
	return flushtest.Observed(cfg, func(s flushtest.Step) error { return observe(string(s)) })
}

// steps returns the names of all steps.
func steps() (all []string) {
	for _, s := range flushtest.Steps() {
		all = append(all, string(s))
	}
	return all
}

// Results with the fakes are valid only as far as the fakes behave like the real sources.
func TestTheFakesKeepThePromisesOfSources(t *testing.T) {
	for kind, b := range map[string]flushtest.SourceHarness{
		"counters": {Promises: row.Inputs{Guarantee: row.ByLedger}, Inputs: []string{row.InputField, row.InputValue}},
		"totals":   {Promises: row.Inputs{Guarantee: row.ByMark}, Inputs: []string{row.InputField, row.InputValue}},
		"hashes":   {Promises: row.Inputs{Fields: true}, Inputs: []string{"id", "name"}},
	} {
		t.Run(kind, func(t *testing.T) {
			flushtest.Source(t, func(*testing.T) flushtest.SourceHarness {
				fake := newFakeSource(kind)
				b.Open = func(_ testing.TB, inputs []string) flush.Source { return fake.Open(inputs) }
				b.Add = func(_ testing.TB, from, to int) {
					for n := from; n < to; n++ {
						fake.Add(n)
					}
				}
				return b
			})
		})
	}
}
