package flushtest

import (
	"maps"
	"slices"
	"testing"

	"baton/internal/flush"
)

// What is shown with the fake holds only as far as it is like the real databases.
func TestTheDatabaseInMemoryKeepsThePromisesOfSinks(t *testing.T) {
	Sink(t, func(*testing.T) SinkBench {
		d := NewDatabase()
		return SinkBench{
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
