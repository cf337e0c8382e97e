package sql_test

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
		if got, err := s.HighestFence(t.Context(), jobs); err != nil || got.Epoch != 9 || got.Job != "j" {
			t.Errorf("of %q: %+v, %v; want epoch 9", jobs, got, err)
		}
	}
}
