package verify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/source"
	"baton/internal/flush/verify"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// repair compares, and marks as far as it may.
func (l *lab) repair() (verify.Result, error) {
	l.Helper()
	c, err := verify.New(l.Context(), l.config, l.keys, verify.Options{
		Repair: true, Flushed: func(context.Context, time.Time) (bool, error) { return false, nil },
	})
	if err != nil {
		l.Fatal(err)
	}
	state, tries := verify.State{}, 20 // connections to a Redis that has gone fail one by one
	for range tries {
		state, err = c.Run(l.Context(), state)
		if err == nil || errors.Is(err, flush.ErrTooManyVanished) {
			break
		}
	}
	return state.Result, err
}

// people counts the rows of the table.
func (l *lab) people() string {
	l.Helper()
	return fmt.Sprint(l.db.Rows(l, "SELECT count(*) FROM people"))
}

// reopen gives the job another address of Redis.
func (l *lab) reopen(url string) {
	l.Helper()
	if err := l.flush.Release(); err != nil {
		l.Fatal(err)
	}
	store, err := redisconn.Open(redisconn.Options{URL: url})
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = store.Close() })
	described, err := source.Describe(l.options)
	if err != nil {
		l.Fatal(err)
	}
	l.store = store
	described.Configure(&l.config, store)
	if l.flush, err = flush.New(l.config); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = l.flush.Release() })
}

// Redis restarted without its data, or the job reads another database, so no row has a record. The alert and the runbook tell an operator
// to run verify --repair, and then resume. All rows must exist after both.
func TestARepairDeletesNoMoreThanAPass(t *testing.T) {
	guarded := map[string]source.Options{
		"hashes":  {Type: "hashes", Key: "user:<id>", Changed: "changed"},
		"scan":    {Type: "scan", Key: "user:<id>", Value: "hash", Vanished: "delete"},
		"capture": {Type: "capture", Key: "user:<id>", Value: "hash"},
	}
	faults := map[string]func(l *lab){
		"restarted empty": func(l *lab) { l.server.Kill(); l.server.Restart(); l.redis = l.server.Conn() },
		"wrong database":  func(l *lab) { l.reopen(strings.TrimSuffix(l.server.URL(), "/0") + "/2") },
	}
	everywhere(t, func(t *testing.T, db *testsupport.Database) {
		for name, o := range guarded {
			for fault, happens := range faults {
				t.Run(name+", "+fault, func(t *testing.T) {
					db.Exec(t, "DROP TABLE IF EXISTS people")
					l := people(t, db, o, 200)
					happens(l)
					for range 2 { // the operator tries again
						r, err := l.repair()
						if !errors.Is(err, flush.ErrTooManyVanished) || r.Marked != 0 || r.Extra != 200 {
							t.Errorf("the repair: %v, %+v", err, r)
						}
						_, err = l.flush.Run(t.Context(), term{}) // the effect of resume
						if name != "hashes" && (name == "scan" || fault == "restarted empty") && !errors.Is(err, flush.ErrTooManyVanished) {
							t.Errorf("the run after it: %v", err)
						}
						if n := l.people(); n != "[[200]]" {
							t.Fatalf("%s rows are left", n)
						}
					}
				})
			}
		}
	})
}

// Only rows that still differ are marked, and no more rows without a record than were counted before the first mark.
func TestARepairStopsWhereMoreWouldGoThanItCounted(t *testing.T) {
	t.Parallel()
	l := people(t, testsupport.SQLite(t), kinds["hashes"], 200)
	l.db.Exec(t, "INSERT INTO people (id) VALUES (9001), (9002)")
	state := verify.State{}
	o := verify.Options{Repair: true, Flushed: func(context.Context, time.Time) (bool, error) { return false, nil }}
	o.Progress = func(s verify.State) error {
		if s.Marking && !state.Marking {
			for id := range 100 {
				l.do("DEL", fmt.Sprint("user:", id))
			}
		}
		state = s
		return nil
	}
	c, err := verify.New(t.Context(), l.config, l.keys, o)
	if err != nil {
		t.Fatal(err)
	}
	ended, err := c.Run(t.Context(), verify.State{})
	if !errors.Is(err, verify.ErrMoreExtra) || ended.Result.Marked > 2 || ended.Result.Extra != 2 {
		t.Errorf("%v: %+v", err, ended.Result)
	}
	l.run()
	if n := l.people(); n != "[[202]]" && n != "[[200]]" {
		t.Errorf("%s rows are left", n)
	}
}
