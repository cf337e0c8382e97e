package sql_test

import (
	"testing"

	"baton/internal/flush"
)

// If two counters shared a mark, one of them would be added again at every pass.
func TestMarksOfNamesThatSomeCollationsHoldForEqualAreApart(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s := db.leading()
		b := batch("a", 0, rowOf(1, 5))
		b.Marks = []flush.Mark{{Name: "Home", Value: "1"}, {Name: "home", Value: "2"}, {Name: "home ", Value: "3"},
			{Name: "hömé", Value: "4"}}
		apply(t, s, fence(1), plan(t, s, "articles", []string{"id"}, "views"), b)
		wantMarks(t, s, fence(1), []string{"home ", "home", "Home", "HOME", "hömé"}, "3", "2", "1", "", "4")
	})
}
