package flushtest

import (
	"maps"
	"slices"
	"testing"

	"baton/internal/flush"
)

// Tests with the fake prove something only if the fake behaves like the real databases.
func TestTheDatabaseInMemoryKeepsThePromisesOfSinks(t *testing.T) {
	Sink(t, func(*testing.T) SinkHarness {
		d := NewDatabase()
		return SinkHarness{
			Open: func(_ testing.TB, inside func()) flush.Sink {
				if inside != nil {
					d.inside = inside
				}
				return d
			},
			Rows: func(_ testing.TB, table string, columns ...string) []string {
				return slices.Collect(maps.Values(d.Rows(table, columns...)))
			},
			Dead: func(testing.TB) int { return len(d.Dead()) },
		}
	})
}
