package sqlstore_test

import (
	"testing"

	"baton/internal/flush"
)

// Of two counters that share a mark one would be added anew at every pass.
func TestMarksOfNamesThatSomeCollationsHoldForEqualAreApart(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s := db.open()
		takeOver(t, s, fence(1))
		b := batch("a", 0, row(1, 5))
		b.Marks = []flush.Mark{{Name: "Home", Value: "1"}, {Name: "home", Value: "2"}, {Name: "home ", Value: "3"}, {Name: "hömé", Value: "4"}}
		apply(t, s, fence(1), plan(t, s, "articles", []string{"id"}, "views"), b)
		wantMarks(t, s, fence(1), []string{"home ", "home", "Home", "HOME", "hömé"}, "3", "2", "1", "", "4")
	})
}

// The difference is in the dead letter, from where it is added: the next pass must not see it
// again.
func TestMarksMoveWithABatchOfDeadLettersOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s := db.open()
		takeOver(t, s, fence(1))
		b := batch("a", 0, row(1, "Ann", -1))
		b.Marks = []flush.Mark{{Name: "1", Value: "7"}}
		if out := apply(t, s, fence(1), plan(t, s, "people", []string{"id"}), b); out.Rows != 0 || len(out.Dead) != 1 {
			t.Errorf("%d rows and %d dead letters, want one dead letter", out.Rows, len(out.Dead))
		}
		wantMarks(t, s, fence(1), []string{"1"}, "7")
	})
}
