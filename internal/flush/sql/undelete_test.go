package sql_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/sqltest"
)

// A node of a new version may list the rows before the first leader of that version updates the tables. The list changes no table.
func TestKeptRowsOfTheTablesBeforePutBack(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30)")
		s := db.leading()
		apply(t, s, fence(1), plan(t, s, "people", []string{"id"}), keeping(batch("a", -1, gone(3, 1))))
		db.Exec(t, "ALTER TABLE baton_deleted DROP COLUMN put_back_at")
		newest := map[string]int{"postgres": 8, "mysql": 10, "sqlite": 8}[db.Driver]
		db.Exec(t, fmt.Sprintf("DELETE FROM baton_schema_version WHERE version_id >= %d", newest))
		fresh := db.open()
		k := db.kept(fresh)
		if k.Key != `{"id":1}` || !k.PutBackAt.IsZero() || !k.KeepUntil.Equal(k.At.Add(week)) {
			t.Errorf("%+v", k)
		}
		if n, _, err := fresh.CountKept(t.Context(), "j", 9); err != nil || n != 1 {
			t.Errorf("counted %d, %v", n, err)
		}
		db.expect("SELECT max(version_id) FROM baton_schema_version", fmt.Sprint(newest-1))
		if err := fresh.Undelete(t.Context(), []flush.Fence{fence(1)}, k); err != nil {
			t.Error(err)
		}
		if db.kept(fresh).PutBackAt.IsZero() {
			t.Error("the time at which the row was put back is missing")
		}
	})
}

// The reply to COMMIT is lost. The next attempt finds out whether the row was put back, even if a job has deleted it again meanwhile.
func TestUndeleteFindsOutWhetherALostCommitWasApplied(t *testing.T) {
	for _, step := range []sqltest.Step{sqltest.StepAfterFence, sqltest.StepAfterCommit} {
		t.Run(string(step), func(t *testing.T) {
			everywhere(t, func(t *testing.T, db *bench) {
				db.people()
				db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30)")
				s := db.leading()
				p := plan(t, s, "people", []string{"id"})
				apply(t, s, fence(1), p, keeping(batch("a", -1, gone(3, 1))))
				attempts := 0
				struck := db.observing(func(at sqltest.Step) error {
					if at != step || attempts > 0 {
						return nil
					}
					attempts++
					return errStopped
				}).open()
				if err := struck.Undelete(t.Context(), []flush.Fence{fence(1)}, db.kept(s)); err != nil {
					t.Error(err)
				}
				db.expect("SELECT name FROM people", "Ann")
				if attempts != 1 || db.kept(s).PutBackAt.IsZero() {
					t.Errorf("%d attempts, %+v", attempts, db.kept(s))
				}
				db.Exec(t, "DELETE FROM people")
				away := db.observing(func(at sqltest.Step) error {
					if at != step {
						return nil
					}
					if step == sqltest.StepAfterCommit {
						db.Exec(t, "DELETE FROM people")
					}
					return errStopped
				}).open()
				err := away.Undelete(t.Context(), []flush.Fence{fence(1)}, db.kept(s))
				if step == sqltest.StepAfterCommit && err != nil {
					t.Error(err)
				}
				if step == sqltest.StepAfterFence && (err == nil || !strings.Contains(err.Error(), "it is unknown whether deleted row")) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// The reply to COMMIT is lost, and the next attempt fails in a way that shows nothing about the first attempt.
func TestUndeleteStaysUnknownIfTheNextAttemptFails(t *testing.T) {
	for name, strike := range map[string]string{
		"the copy was removed":  "DELETE FROM baton_deleted",
		"the column is missing": "ALTER TABLE baton_deleted DROP COLUMN put_back_at",
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, db *bench) {
				db.people()
				db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30)")
				s := db.leading()
				apply(t, s, fence(1), plan(t, s, "people", []string{"id"}), keeping(batch("a", -1, gone(3, 1))))
				k := db.kept(s)
				struck := db.stopAt(sqltest.StepAfterCommit, func() error {
					db.Exec(t, strike)
					return errStopped
				}).open()
				err := struck.Undelete(t.Context(), []flush.Fence{fence(1)}, k)
				if err == nil || errors.Is(err, sql.ErrNotKept) || !strings.Contains(err.Error(), "it is unknown whether deleted row") {
					t.Errorf("got %v", err)
				}
				db.expect("SELECT name FROM people", "Ann")
			})
		})
	}
}

// The row's job was removed, and a job of another election has got its name. The row is put back nevertheless.
func TestUndeleteIgnoresTheFenceOfAnotherElection(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30)")
		s := db.leading(under("ours"))
		apply(t, s, fence(1), plan(t, s, "people", []string{"id"}), keeping(batch("a", -1, gone(3, 1))))
		k := db.kept(s)
		none := flush.Fence{Job: "j"}
		if err := s.Undelete(t.Context(), []flush.Fence{none}, k); !errors.Is(err, flush.ErrFenced) {
			t.Errorf("beside a fence of the same election: %v", err)
		}
		db.Exec(t, "UPDATE baton_fence SET lock_key = 'theirs'")
		if held, err := s.Fences(t.Context(), []string{"j"}); err != nil || len(held) != 0 {
			t.Errorf("fences of this election: %v, %v", held, err)
		}
		if err := s.Undelete(t.Context(), []flush.Fence{none}, k); err != nil {
			t.Error(err)
		}
		db.expect("SELECT name FROM people", "Ann")
	})
}
