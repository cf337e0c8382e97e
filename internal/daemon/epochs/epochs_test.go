package epochs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/flush"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/testsupport"
)

func TestTheEpochFileKeepsTheHighestOfEveryElection(t *testing.T) {
	dirs := t.TempDir() + ":/elsewhere"
	path := Path(func(string) (string, bool) { return dirs, true })
	log := zap.NewNop()
	a, b := Open(path, "a", &File{}, log), Open(path, "b", &File{}, log)
	a.Heard(7, time.Second)
	a.Heard(5, time.Hour)
	a.Write()
	b.Heard(9, 0)
	b.Heard(absurd, 0) // a user has written this epoch into Redis
	b.Write()
	a.Heard(8, 0) // the lease of this epoch is unknown
	a.Write()
	if again := Open(path, "a", &File{}, log).Known(); again != (Term{8, 1000}) {
		t.Errorf("a is read as %+v, want epoch 8 and the last lease that was told", again)
	}
	if again := Open(path, "b", &File{}, log).Known(); again != (Term{9, 0}) {
		t.Errorf("b is read as %+v, want 9", again)
	}
	if again := Open(path, "c", &File{}, log).Known(); again != (Term{}) {
		t.Errorf("an election that never was is read as %+v", again)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want a file for its owner alone", info, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left beside the file: %v, %v", left, err)
	}
}

func TestABadEpochFileIsToldAndReplaced(t *testing.T) {
	for _, text := range []string{`{"a": `, "", "null", "[]", `{"a": 1.5}`, `{"a": 99999999999999999999}`} {
		core, logs := recorder.New(zapcore.WarnLevel)
		path := filepath.Join(t.TempDir(), "epoch.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		e := Open(path, "a", &File{}, zap.New(core))
		if e.Known() != (Term{}) || logs.Len() != 1 || !strings.Contains(logs.All()[0].ContextMap()["error"].(string), path) {
			t.Errorf("%q: known %+v, told %v", text, e.Known(), logs.All())
		}
		e.Heard(3, 0)
		e.Write()
		if again := Open(path, "a", &File{}, zap.NewNop()).Known(); again.Epoch != 3 {
			t.Errorf("%q: read as %+v, want 3", text, again)
		}
	}
}

// An operator who has repaired an epoch that was written by hand must not find it again.
func TestAnEpochInTheFileThatCannotBeIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "epoch.json")
	if err := os.WriteFile(path, fmt.Appendf(nil, `{"a": %d, "b": -4, "c": 5}`, int64(absurd)), 0o600); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int64{"a": 0, "b": 0, "c": 5} {
		if got := Open(path, key, &File{}, zap.NewNop()).Known().Epoch; got != want {
			t.Errorf("%s is read as %d, want %d", key, got, want)
		}
	}
}

func TestAnEpochFileThatCannotBeWrittenIsToldOnce(t *testing.T) {
	core, logs := recorder.New(zapcore.WarnLevel)
	e := Open(filepath.Join(t.TempDir(), "gone", "epoch.json"), "a", &File{}, zap.New(core))
	for epoch := range int64(5) {
		e.Heard(epoch, 0)
		e.Write()
	}
	if logs.Len() != 1 {
		t.Errorf("told %d times: %v", logs.Len(), logs.All())
	}
	if e.Known().Epoch != 4 {
		t.Errorf("known %+v, want 4", e.Known())
	}
	without := Open("", "a", &File{}, zap.New(core))
	without.Heard(1, 0)
	without.Write()
	if logs.Len() != 1 {
		t.Errorf("without a state directory: %v", logs.All())
	}
}

// A fence that was written by hand does not raise the epochs of all nodes, but it shows that there was a term. If another database or
// this host knows similar epochs, the cause was a wrong clock.
func TestAForgedFenceIsNotCountedOnFrom(t *testing.T) {
	far := time.Now().Add(31 * 24 * time.Hour).UnixMilli()
	for name, c := range map[string]struct {
		own         int64
		main, other int64
		want        int64
	}{
		"forged":              {0, far, 0, 1},
		"forged beside a":     {0, far, 8, 8},
		"vouched for":         {0, far, far - 5, far},
		"this host knows it":  {far - 5, far, 0, far},
		"heard of and forged": {5, far, 0, 5},
		"within reason":       {0, far - 3*24*time.Hour.Milliseconds(), 0, far - 3*24*time.Hour.Milliseconds()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbs := site.Databases{}
			conf := config.Config{}
			for _, d := range []struct {
				name  string
				epoch int64
			}{{"main", c.main}, {"other", c.other}} {
				if d.epoch == 0 {
					continue
				}
				db := testsupport.SQLite(t)
				store, err := open.Database(db.Driver, sql.Options{Name: d.name, DSN: db.DSN})
				if err != nil {
					t.Fatal(err)
				}
				defer store.Close()
				if err := store.TakeOver(t.Context(), flush.Fence{Job: d.name, Epoch: d.epoch, Owner: "o", NodeID: "b", Lease: time.Second}); err != nil {
					t.Fatal(err)
				}
				dbs[d.name] = store
				conf.Jobs = append(conf.Jobs, config.Job{Name: d.name, Flush: config.Flush{To: config.To{Database: d.name}}})
			}
			e := Open("", "baton", &File{}, zap.NewNop())
			e.note(c.own, 0)
			if got := e.Last(t.Context(), conf, dbs); got != (Term{c.want, 1000}) {
				t.Errorf("%+v, want epoch %d and a lease of 1000 ms", got, c.want)
			}
		})
	}
}
