package sql_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/sql"
)

func under(key string) func(*sql.Options) { return func(o *sql.Options) { o.LockKey = key } }

func TestTwoElectionsOnOneDatabaseAreApart(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		ours, theirs := db.open(under("ours")), db.open(under("it's theirs"))
		db.letters(ours, "users", "o", dead(`{"key":"1"}`, "too long"))
		db.letters(theirs, "orders", "t", dead(`{"key":"2"}`, "too long"), dead(`{"key":"3"}`, "too long"))

		for name, own := range map[string]*sql.Store{"users": ours, "orders": theirs} {
			want := map[string]int{"users": 1, "orders": 2}[name]
			letters, err := own.Letters(t.Context(), sql.LetterFilter{}, 9, 0)
			if err != nil || len(letters) != want || letters[0].Job != name {
				t.Errorf("%s: %d letters, %v; want %d of its own", name, len(letters), err, want)
			}
			keys, err := own.LetterKeys(t.Context(), sql.LetterFilter{})
			if err != nil || len(keys) != want {
				t.Errorf("%s: %d keys of letters, %v", name, len(keys), err)
			}
			if n, err := own.LettersWaiting(t.Context()); err != nil || fmt.Sprint(n) != fmt.Sprintf("map[%s:%d]", name, want) {
				t.Errorf("%s: waiting %v, %v", name, n, err)
			}
			var reasons []string
			err = own.Reasons(t.Context(), sql.LetterFilter{}, func(r sql.Reason) error { reasons = append(reasons, r.Job); return nil })
			if err != nil || !slices.Equal(reasons, []string{name}) {
				t.Errorf("%s: reasons of %v, %v", name, reasons, err)
			}
			fences, err := own.Fences(t.Context(), []string{"users", "orders"})
			if err != nil || len(fences) != 1 || fences[0].Job != name {
				t.Errorf("%s: fences %v, %v", name, fences, err)
			}
			other := theirs
			if name == "orders" {
				other = ours
			}
			if _, err := other.Letter(t.Context(), letters[0].ID); !errors.Is(err, sql.ErrNoLetter) {
				t.Errorf("the other election finds a letter of %s: %v", name, err)
			}
		}
	})
}

// The positions and marks of one Redis are wrong for another Redis. A job that continued from them would lose rows, or add rows twice.
func TestAJobOfAnotherElectionIsNotTakenOver(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		theirs := db.leading(under("it's theirs"))
		ours, next := db.open(under("ours")), fence(7)
		err := ours.TakeOver(t.Context(), next)
		if other, ok := errors.AsType[*sql.OtherElectionError](err); !ok || other.LockKey != "it's theirs" {
			t.Fatalf("taking over a job of another election: %v", err)
		}
		if errors.Is(err, flush.ErrFenced) || errors.Is(err, flush.ErrTransient) {
			t.Errorf("%v: a higher epoch or another try would not help", err)
		}
		takeOver(t, theirs, fence(2)) // the other election still leads
		const move = "UPDATE baton_fence SET lock_key = 'ours' WHERE lock_key = 'it''s theirs'; " +
			"UPDATE baton_deleted SET lock_key = 'ours' WHERE lock_key = 'it''s theirs'"
		if !strings.HasSuffix(err.Error(), move) {
			t.Errorf("%v\nwants to end with %s", err, move)
		}
		db.Exec(t, move)
		takeOver(t, ours, next)
	})
}

func TestAFenceOfAVersionThatNamedNoElectionIsTakenOver(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		older, newer := db.leading(), db.open(under("ours"))
		takeOver(t, newer, fence(2))
		db.expect("SELECT lock_key FROM baton_fence", "ours")
		db.Exec(t, "UPDATE baton_fence SET epoch = 3, owner = 'owner-3'") // imitates a takeover by an older node
		takeOver(t, newer, fence(4))
		if err := older.TakeOver(t.Context(), fence(5)); err == nil {
			t.Error("a store without an election took over a fence of one")
		}
	})
}

// At this moment the first node has created the table of versions, but no other table.
func TestLettersAreLookedForWhileTheTablesAreMade(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		s := db.leading(under("ours"))
		db.Exec(t, "DELETE FROM baton_schema_version")
		if letters, err := s.Letters(t.Context(), sql.LetterFilter{}, 9, 0); err != nil || len(letters) != 0 {
			t.Errorf("%d letters, %v", len(letters), err)
		}
	})
}

func TestTheLedgerOfAnotherElectionIsNotPruned(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		theirs := db.leading(under("theirs"))
		columns := plan(t, theirs, "articles", []string{"id"}, "views")
		apply(t, theirs, fence(1), columns, ofShard("views:0", batch("a", 0, rowOf(1, 1))))
		apply(t, theirs, fence(1), columns, ofShard("views:0", batch("b", 0, rowOf(1, 1))))
		db.age("batch_id = 'a'")
		if n, err := db.open(under("ours")).Prune(t.Context(), week); err != nil || n != 0 {
			t.Errorf("pruned %d entries of another election, %v", n, err)
		}
		if n, err := theirs.Prune(t.Context(), week); err != nil || n != 1 {
			t.Errorf("pruned %d entries of its own, %v", n, err)
		}
	})
}

// If a job has a fence when the migration runs, the job ran before baton recorded who may write a table's rows. A later job did not.
func TestJobsThatRanBeforeBatonAskedAreRecorded(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s := db.leading()
		db.Exec(t, "DELETE FROM baton_schema_version WHERE version_id >= "+ // this migration, and the two of deleted rows
			"(SELECT n FROM (SELECT max(version_id) - 2 AS n FROM baton_schema_version) x)")
		db.Exec(t, "DROP TABLE baton_deleted")
		upgraded := db.open()
		next := fence(2)
		takeOver(t, upgraded, next)
		other := fence(3)
		other.Job = "later"
		takeOver(t, upgraded, other)
		for job, want := range map[string]string{next.Job: "yes", other.Job: ""} {
			if got, err := s.Recorded(t.Context(), job, flush.RanBefore); got != want || err != nil {
				t.Errorf("job %s: %q, %v", job, got, err)
			}
		}
	})
}
