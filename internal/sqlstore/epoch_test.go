package sqlstore_test

import (
	"os"
	"testing"
)

func TestTheHighestEpochIsOfTheJobsThatAreAskedFor(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		s := db.open()
		takeOver(t, s, fence(7))
		for job, epoch := range map[string]int64{"b": 9, "c": 12} {
			f := fence(epoch)
			f.Job = job
			takeOver(t, s, f)
		}
		for _, x := range []struct {
			jobs []string
			want int64
		}{{[]string{"j", "b"}, 9}, {[]string{"j"}, 7}, {[]string{"new"}, 0}, {nil, 0}} {
			if got, err := db.open().HighestEpoch(t.Context(), x.jobs); err != nil || got != x.want {
				t.Errorf("of %q: %d, %v; want %d", x.jobs, got, err, x.want)
			}
		}
	})
}

func TestLookingForAnEpochMakesNothing(t *testing.T) {
	emptyServers(t, func(t *testing.T, db *bench) {
		if epoch, err := db.open().HighestEpoch(t.Context(), []string{"j"}); err == nil || epoch != 0 {
			t.Errorf("without a fence table: %d, %v", epoch, err)
		}
		db.expect("SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'baton%'", "0")
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Chdir(t.TempDir())
		db := &bench{Database: kinds[2].make(t), t: t}
		db.DSN = "new.db"
		if epoch, err := db.open().HighestEpoch(t.Context(), []string{"j"}); err != nil || epoch != 0 {
			t.Errorf("without a file: %d, %v", epoch, err)
		}
		if _, err := os.Stat("new.db"); err == nil {
			t.Error("it made the file")
		}
	})
}
