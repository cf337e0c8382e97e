package sql_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

// letters stores dead letters in the given order. Each letter is somewhat newer than the letter before it.
func (b *bench) letters(s *sql.Store, job, batch string, dead ...row.DeadLetter) {
	b.t.Helper()
	f := fence(1)
	f.Job = job
	takeOver(b.t, s, f)
	for i, d := range dead {
		apply(b.t, s, f, plan(b.t, s, "people", []string{"id"}), flush.Batch{ID: batch, Part: i, Dead: []row.DeadLetter{d}})
	}
}

// aged makes the letters of a job older.
func (b *bench) aged(job string, hours int) {
	b.t.Helper()
	b.create(fmt.Sprintf("UPDATE baton_dead_letter SET at = at - interval '%d hours' WHERE job = '%s'", hours, job),
		fmt.Sprintf("UPDATE baton_dead_letter SET at = at - INTERVAL %d HOUR WHERE job = '%s'", hours, job),
		fmt.Sprintf("UPDATE baton_dead_letter SET at = strftime('%%Y-%%m-%%d %%H:%%M:%%f', at, '-%d hours') WHERE job = '%s'", hours, job))
}

func dead(record, why string) row.DeadLetter { return row.DeadLetter{Record: record, Error: why} }

func TestDeadLettersAreListedByWhatIsAskedFor(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s := db.open()
		for _, doing := range []func() (int, error){
			func() (int, error) {
				l, err := s.Letters(t.Context(), sql.LetterFilter{}, 9, 0)
				return len(l), err
			},
			func() (int, error) { l, err := s.LetterKeys(t.Context(), sql.LetterFilter{}); return len(l), err },
			func() (int, error) { l, err := s.LettersWaiting(t.Context()); return len(l), err },
		} {
			if n, err := doing(); n != 0 || err != nil {
				t.Errorf("before baton has made its tables: %d, %v", n, err)
			}
		}
		db.letters(s, "old", "o", dead(`{"key":"0","name":"Zoë? 100%"}`, "too long"))
		db.aged("old", 48)
		db.letters(s, "new", "n", dead(`{"key":"1"}`, "too long"), dead(`{"key":"2"}`, `"x" is no number`), dead(`{"key":"3"}`, "too long"))

		list := func(f sql.LetterFilter, limit int) (keys []string) {
			t.Helper()
			found, err := s.Letters(t.Context(), f, limit, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range found {
				r, err := row.ParseRecordJSON(nil, l.Record)
				if err != nil || len(l.ID) != 32 || l.BatchID != l.Job[:1] || l.Error == "" {
					t.Errorf("letter %+v, %v", l, err)
				}
				if age := time.Since(l.At); l.Job == "new" && (age < -time.Minute || age > time.Minute) ||
					l.Job == "old" && (age < 47*time.Hour || age > 49*time.Hour) {
					t.Errorf("letter of %s is from %v", l.Job, l.At)
				}
				keys = append(keys, r.Key)
			}
			if keysOnly, err := s.LetterKeys(t.Context(), f); err != nil || limit > 3 && len(keysOnly) != len(found) {
				t.Errorf("%+v: %d letters and %d keys, %v", f, len(found), len(keysOnly), err)
			}
			return keys
		}
		for _, c := range []struct {
			f     sql.LetterFilter
			limit int
			want  []string
		}{
			{sql.LetterFilter{}, 9, []string{"3", "2", "1", "0"}},
			{sql.LetterFilter{}, 2, []string{"3", "2"}},
			{sql.LetterFilter{Job: "new"}, 9, []string{"3", "2", "1"}},
			{sql.LetterFilter{Job: "none"}, 9, nil},
			{sql.LetterFilter{Within: time.Hour}, 9, []string{"3", "2", "1"}},
			{sql.LetterFilter{Before: time.Hour}, 9, []string{"0"}},
			{sql.LetterFilter{Within: 72 * time.Hour, Before: 24 * time.Hour, Job: "old"}, 9, []string{"0"}},
			{sql.LetterFilter{Text: `"x" is`}, 9, []string{"2"}},
			{sql.LetterFilter{Text: "ë? 100%"}, 9, []string{"0"}},
			{sql.LetterFilter{Text: "'; DROP TABLE people; --"}, 9, nil},
		} {
			// Letters of the same moment have no order.
			got, want := list(c.f, c.limit), c.want
			if db.Driver == "sqlite" {
				slices.Sort(got)
				want = slices.Sorted(slices.Values(want))
				if c.limit == 2 && len(got) == 2 {
					continue
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%+v: %q, want %q", c.f, got, c.want)
			}
		}
		if found, err := s.Letters(t.Context(), sql.LetterFilter{Job: "old"}, 1, 21); err != nil ||
			found[0].Record != `{"key":"0","name":"Zo` {
			t.Errorf("cut: %+v, %v", found, err)
		}
		if n, err := s.LettersWaiting(t.Context()); err != nil || len(n) != 2 || n["old"] != 1 || n["new"] != 3 {
			t.Errorf("counted %v, %v", n, err)
		}
		reasons := map[string]int64{}
		if err := s.Reasons(t.Context(), sql.LetterFilter{}, func(r sql.Reason) error {
			reasons[r.Job+" "+r.Error] = r.Letters
			if r.Newest.Before(r.Oldest) || len(r.Example) != 32 {
				t.Errorf("reason %+v", r)
			}
			return nil
		}); err != nil || len(reasons) != 3 || reasons["new too long"] != 2 {
			t.Errorf("reasons %v, %v", reasons, err)
		}
	})
}

func TestADeadLetterIsFoundByTheBeginningOfItsID(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s := db.open()
		db.letters(s, "j", "a", dead(`{"key":"1"}`, "x"), dead(`{"key":"2"}`, "x"), dead(`{"key":"3"}`, "x"))
		all, err := s.Letters(t.Context(), sql.LetterFilter{}, 9, 0)
		if err != nil {
			t.Fatal(err)
		}
		db.Exec(t, "UPDATE baton_dead_letter SET id = 'abc1' WHERE id = '"+all[0].ID+"'")
		db.Exec(t, "UPDATE baton_dead_letter SET id = 'abc2' WHERE id = '"+all[1].ID+"'")
		for id, want := range map[string]error{
			"abc1": nil, all[2].ID: nil, "abc": sql.ErrManyLetters, "abc3": sql.ErrNoLetter,
			"": sql.ErrNoLetter, "%": sql.ErrNoLetter, "ABC1": sql.ErrNoLetter,
		} {
			l, err := s.Letter(t.Context(), id)
			if !errors.Is(err, want) || want == nil && !strings.HasPrefix(l.ID, id) {
				t.Errorf("%q: %+v, %v", id, l, err)
			}
		}
	})
}

func TestDroppedLettersAreGoneAndCountedOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s := db.open()
		db.letters(s, "j", "a", dead(`{"key":"1"}`, "x"), dead(`{"key":"2"}`, "x"), dead(`{"key":"3"}`, "x"))
		keys, err := s.LetterKeys(t.Context(), sql.LetterFilter{})
		if err != nil || len(keys) != 3 {
			t.Fatal(keys, err)
		}
		ids := []string{keys[0].ID, keys[1].ID, "none"}
		for _, want := range []int64{2, 0} {
			if n, err := s.DropLetters(t.Context(), ids); n != want || err != nil {
				t.Errorf("dropped %d, %v, want %d", n, err, want)
			}
		}
		db.expect("SELECT id FROM baton_dead_letter", keys[2].ID)
	})
}

// There are more letters than one query reads.
func TestEveryLetterIsNamedOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s := db.leading()
		var all []string // all letters are of the same moment
		for i := range 5001 {
			all = append(all, fmt.Sprintf(`('%032x','j','a','{"key":"%d"}','x','2024-01-01 00:00:00')`, i, i))
		}
		db.Exec(t, "INSERT INTO baton_dead_letter (id, job, batch_id, record, error, at) VALUES "+strings.Join(all, ","))
		keys, err := s.LetterKeys(t.Context(), sql.LetterFilter{Job: "j"})
		ids := map[string]bool{}
		for _, k := range keys {
			ids[k.ID] = k.Job == "j"
		}
		if err != nil || len(keys) != 5001 || len(ids) != 5001 {
			t.Errorf("%d keys, %d different, %v", len(keys), len(ids), err)
		}
	})
}

func TestLookingForLettersMakesNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	db := &bench{Database: kinds[2].make(t), t: t}
	db.DSN = "new.db"
	if found, err := db.open().Letters(context.Background(), sql.LetterFilter{}, 1, 0); len(found) > 0 || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := os.Stat("new.db"); err == nil {
		t.Error("it made the file")
	}
}
