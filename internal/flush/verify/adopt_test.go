package verify_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/verify"
	"baton/internal/testsupport"
)

// asks makes the job ask for acceptances. The job has not run yet.
func (l *lab) asks() (record string) {
	l.Helper()
	var err error
	l.config.Adopt = flush.Adopt{Differ: verify.Differ{}}
	if l.flush, err = flush.New(l.config); err != nil {
		l.Fatal(err)
	}
	digest, err := l.flush.Digest(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	return flush.AdoptionName(digest)
}

// recorded reads a record of the job.
func (l *lab) recorded(name string) string {
	l.Helper()
	text, err := l.sink.Recorded(l.Context(), l.config.Job, name)
	if err != nil {
		l.Fatal(err)
	}
	return text
}

// repairs compares, and marks as far as the job's rights allow.
func (l *lab) repairs() (verify.Result, error) {
	l.Helper()
	c, err := verify.New(l.Context(), l.config, l.keys, verify.Options{Repair: true, Flushed: l.flushed, May: l.flush.MayMark})
	if err != nil {
		l.Fatal(err)
	}
	state, err := c.Run(l.Context(), verify.State{})
	if err == nil {
		err = l.flush.Marked(l.Context())
	}
	return state.Result, err
}

func (l *lab) names() string {
	l.Helper()
	return fmt.Sprint(l.db.Rows(l, "SELECT id, name FROM people ORDER BY id"))
}

// The table existed before the job. The application's changes are written at once. A repair asks before it changes or deletes a row.
func TestARepairAsksWhoseTheRowsAre(t *testing.T) {
	everywhere(t, func(t *testing.T, db *testsupport.Database) {
		o := kinds["hashes"]
		o.MaxPct = 100
		l := people(t, db, o, 0)
		db.Exec(t, "DELETE FROM baton_position")
		db.Exec(t, "INSERT INTO people (id, name) VALUES (1, 'one'), (2, 'theirs'), (3, 'gone')")
		record := l.asks()
		for id, name := range map[int]string{1: "one", 2: "two", 4: "four", 5: "five"} {
			l.do("HSET", fmt.Sprint("user:", id), "name", name)
		}
		l.do("SADD", o.Changed, 4)
		l.run()
		if was := l.recorded(record); was != "" || l.names() != "[[1 one] [2 theirs] [3 gone] [4 four]]" {
			t.Fatalf("recorded %q, and the rows are %s", was, l.names())
		}
		for range 2 { // the operator tries again
			r, err := l.repairs()
			if !errors.Is(err, flush.ErrUnaccepted) || r.Marked != 0 || l.recorded(record) != "waits 1 1" {
				t.Errorf("%v, %+v, recorded %q", err, r, l.recorded(record))
			}
		}
		l.run()
		if l.names() != "[[1 one] [2 theirs] [3 gone] [4 four]]" {
			t.Fatalf("after the refusals the rows are %s", l.names())
		}
		accepted, err := flush.Accept(l.recorded(record), "ann", time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.sink.Replace(t.Context(), l.config.Job, record, "waits 1 1", accepted); err != nil {
			t.Fatal(err)
		}
		if r, err := l.repairs(); err != nil || r.Marked != 3 || l.recorded(record) != "adopted" {
			t.Errorf("%v, %+v, recorded %q", err, r, l.recorded(record))
		}
		l.run()
		if l.names() != "[[1 one] [2 two] [4 four] [5 five]]" {
			t.Errorf("after the repair the rows are %s", l.names())
		}
		db.Exec(t, "UPDATE people SET name = 'x'") // the rows are the job's, so it does not ask again
		if _, err := l.repairs(); err != nil {
			t.Error(err)
		}
		l.run()
		if l.names() != "[[1 one] [2 two] [4 four] [5 five]]" {
			t.Errorf("of its own rows: %s", l.names())
		}
	})
}

// A job owns the rows of a table that was empty at its first run. An existing record is not written again.
func TestATableThatIsEmptyAtTheFirstRunIsTheJobs(t *testing.T) {
	everywhere(t, func(t *testing.T, db *testsupport.Database) {
		l := people(t, db, kinds["hashes"], 0)
		db.Exec(t, "DELETE FROM baton_position")
		record := l.asks()
		l.do("HSET", "user:1", "name", "one")
		l.do("SADD", "changed", 1)
		l.run()
		if was := l.recorded(record); was != "adopted" {
			t.Errorf("recorded %q", was)
		}
		db.Exec(t, "UPDATE people SET name = 'x'")
		if _, err := l.repairs(); err != nil {
			t.Error(err)
		}
		l.run()
		if l.names() != "[[1 one]]" {
			t.Errorf("the rows are %s", l.names())
		}
		if err := l.sink.Replace(t.Context(), l.config.Job, record, "", "waits 1 1"); !errors.Is(err, flush.ErrMoved) {
			t.Errorf("a record was made where there is one: %v", err)
		}
	})
}
