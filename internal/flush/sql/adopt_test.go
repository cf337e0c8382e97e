package sql_test

import (
	"errors"
	"testing"

	"baton/internal/flush"
)

// An operator's command reads a record, and a backfill writes it. Both must work also if no job has run and baton's tables do not exist
// yet.
func TestARecordIsReadMadeAndReplacedWithoutAFence(t *testing.T) {
	emptyEverywhere(t, func(t *testing.T, db *bench) {
		s := db.open()
		recorded := func(want string) {
			t.Helper()
			if got, err := s.Recorded(t.Context(), "users", "adoption x"); got != want || err != nil {
				t.Errorf("recorded %q, %v; want %q", got, err, want)
			}
		}
		replace := func(old, text string, want error) {
			t.Helper()
			if err := s.Replace(t.Context(), "users", "adoption x", old, text); !errors.Is(err, want) {
				t.Errorf("%q for %q: %v, want %v", text, old, err, want)
			}
		}
		recorded("")
		replace("", "waits 1 2", nil)
		recorded("waits 1 2")
		replace("", "adopted", flush.ErrMoved)
		replace("waits 1 1", "adopted", flush.ErrMoved)
		recorded("waits 1 2")
		replace("waits 1 2", "accepted 1 2 now ann", nil)
		recorded("accepted 1 2 now ann")
	})
}
