package sql_test

import (
	"strconv"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/sql/sqltest"
)

func TestEveryDatabaseKeepsThePromisesOfItsPort(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			flushtest.Sink(t, func(t *testing.T) flushtest.SinkHarness { return prepared(t, kind.make).conformance() })
		})
	}
}

func (b *bench) conformance() flushtest.SinkHarness {
	return flushtest.SinkHarness{
		Open: func(_ testing.TB, inside func()) flush.Sink {
			return b.observing(func(step sqltest.Step) error {
				if inside != nil && step == sqltest.StepAfterFence {
					inside()
				}
				return nil
			}).open()
		},
		Rows: func(t testing.TB, table string, columns ...string) []string {
			var rows []string
			for _, texts := range b.Rows(t, "SELECT "+strings.Join(columns, ", ")+" FROM "+table) {
				rows = append(rows, strings.ReplaceAll(strings.Join(texts, "|"), "NULL", "-"))
			}
			return rows
		},
		Dead: func(t testing.TB) int {
			n, err := strconv.Atoi(b.Rows(t, "SELECT count(*) FROM baton_dead_letter")[0][0])
			if err != nil {
				t.Error(err)
			}
			return n
		},
	}
}
