package sql_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/sql"
)

func TestTheHighestEpochIsOfTheJobsThatAreAskedFor(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		s := db.open()
		first := fence(7)
		first.Lease = 7 * time.Second
		takeOver(t, s, first)
		for job, epoch := range map[string]int64{"b": 9, "c": 12} {
			f := fence(epoch)
			f.Job, f.Lease = job, time.Duration(epoch)*time.Second
			takeOver(t, s, f)
		}
		for _, x := range []struct {
			jobs []string
			want int64
		}{{[]string{"j", "b"}, 9}, {[]string{"j"}, 7}, {[]string{"new"}, 0}, {nil, 0}} {
			if got, err := db.open().HighestFence(t.Context(), x.jobs); err != nil || got.Epoch != x.want ||
				got.Lease != time.Duration(x.want)*time.Second {
				t.Errorf("of %q: %+v, %v; want epoch %d and as many seconds", x.jobs, got, err, x.want)
			}
		}
	})
}

// The former owner of a fence that was reset cannot write any more, although its epoch was higher.
func TestAFenceThatWasResetIsNobodyElses(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		s := db.open()
		forged, next := fence(9007199254740989), fence(8)
		next.Owner = "next"
		takeOver(t, s, forged)
		other := forged
		other.Owner = "somebody else"
		if err := s.ResetFence(t.Context(), other, next); !errors.Is(err, sql.ErrFenceMoved) {
			t.Errorf("a fence that is another's: %v, want ErrFenceMoved", err)
		}
		if err := s.ResetFence(t.Context(), forged, next); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Fences(t.Context(), []string{"j", "new"}); err != nil || len(got) != 1 || got[0].Epoch != 8 ||
			got[0].Owner != "next" {
			t.Errorf("%+v, %v", got, err)
		}
		db.expect("SELECT node_id, lease_ms FROM baton_fence", fmt.Sprintf("%s|%d", next.NodeID, next.Lease.Milliseconds()))
		if _, err := s.Positions(t.Context(), forged, []string{"x"}); !errors.Is(err, flush.ErrFenced) {
			t.Errorf("the old holder: %v, want ErrFenced", err)
		}
		takeOver(t, s, fence(9))
	})
}

func TestLookingForAnEpochMakesNothing(t *testing.T) {
	emptyServers(t, func(t *testing.T, db *bench) {
		if found, err := db.open().HighestFence(t.Context(), []string{"j"}); err == nil || found != (flush.Fence{}) {
			t.Errorf("without a fence table: %+v, %v", found, err)
		}
		db.expect("SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'baton%'", "0")
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Chdir(t.TempDir())
		db := &bench{Database: kinds[2].make(t), t: t}
		db.DSN = "new.db"
		if found, err := db.open().HighestFence(t.Context(), []string{"j"}); err != nil || found != (flush.Fence{}) {
			t.Errorf("without a file: %+v, %v", found, err)
		}
		if _, err := os.Stat("new.db"); err == nil {
			t.Error("it made the file")
		}
	})
}
