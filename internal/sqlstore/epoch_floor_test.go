package sqlstore_test

import (
	"testing"

	"baton/internal/testsupport"
)

func TestTheHighestEpochIsFoundWhicheverJobHasIt(t *testing.T) {
	db := &bench{Database: testsupport.SQLite(t), t: t}
	s := db.open()
	takeOver(t, s, fence(9))
	later := fence(7)
	later.Job = "k"
	takeOver(t, s, later)
	for _, jobs := range [][]string{{"j", "k", "new"}, {"new", "k", "j"}} {
		if got, err := s.HighestEpoch(t.Context(), jobs); err != nil || got != 9 {
			t.Errorf("of %q: %d, %v; want 9", jobs, got, err)
		}
	}
}
