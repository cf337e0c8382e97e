package sql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// These are the errors of a search for one dead letter. Use errors.Is to match them.
var (
	// ErrNoLetter means that no dead letter with the given id exists now in this database.
	ErrNoLetter = errors.New("no such dead letter")
	// ErrManyLetters means that the ids of several dead letters begin with the given text.
	ErrManyLetters = errors.New("several dead letters have an id with this beginning")
)

// Letter is one dead letter. Its fields are the columns of the table of dead letters.
type Letter struct {
	ID, Job, BatchID string
	At               time.Time // when the letter was written, by the database's clock
	Record           string    // see row.RecordJSON
	Error            string    // why the row was refused
}

// LetterFilter selects the dead letters that match all fields of the filter that are set.
type LetterFilter struct {
	Job    string
	Within time.Duration // only letters that are at most so old; whole seconds
	Before time.Duration // only letters that are older; whole seconds
	Text   string        // a literal text that the record or the error contains
}

// Letters returns dead letters, the newest first. limit is the maximum number of letters, and record is the maximum length of a record in
// characters. If record is 0, the records are complete.
func (s *Store) Letters(ctx context.Context, f LetterFilter, limit, record int) ([]Letter, error) {
	c, err := s.condition(ctx, f)
	if err != nil {
		return nil, err
	}
	return s.letters(ctx, "list the dead letters", c, limit, record)
}

// letters reads the dead letters that meet a condition, the newest first. The argument what names the step in errors.
func (s *Store) letters(ctx context.Context, what string, c *where, limit, record int) ([]Letter, error) {
	if record <= 0 {
		record = 1 << 30
	}
	var found []Letter
	args := append(append([]any{record}, c.args...), limit)
	err := s.look(ctx, what, fmt.Sprintf(s.queries["dead_list"], c.text), args, func(row []string) error {
		l, err := letterOf(row)
		found = append(found, l)
		return err
	})
	return found, err
}

// Letter returns the dead letter whose id is the given text, or begins with it.
func (s *Store) Letter(ctx context.Context, id string) (Letter, error) {
	if !letterID.MatchString(id) {
		return Letter{}, fmt.Errorf("%w: %q is not an id or the beginning of an id: use up to 32 of the characters 0-9 "+
			"and a-f", ErrNoLetter, id)
	}
	c, err := s.condition(ctx, LetterFilter{})
	if err != nil {
		return Letter{}, err
	}
	c.add("id LIKE ?", id+"%")
	found, err := s.letters(ctx, "find a dead letter", c, 2, 0)
	switch {
	case err != nil:
		return Letter{}, err
	case len(found) == 0:
		return Letter{}, fmt.Errorf("%w: %s", ErrNoLetter, id)
	case len(found) > 1:
		return Letter{}, fmt.Errorf("%w: %s: give more characters of the id", ErrManyLetters, id)
	}
	letter := found[0]
	whole, err := s.whole(ctx, letter.ID)
	if whole != "" {
		letter.Record = whole
	}
	return letter, err
}

// whole returns the complete record of a letter, joined from its parts. It returns "" if the record is not stored in parts.
func (s *Store) whole(ctx context.Context, id string) (string, error) {
	var record strings.Builder
	err := s.look(ctx, "read the parts of a dead letter", s.queries["dead_parts"], []any{id}, func(row []string) error {
		record.WriteString(row[0])
		return nil
	})
	return record.String(), err
}

var letterID = regexp.MustCompile(`^[0-9a-f]{1,32}$`)

// Reason counts the dead letters of one job that have the same error.
type Reason struct {
	Job, Error     string
	Letters        int64
	Oldest, Newest time.Time
	Example        string // the id of one of these letters
}

// Reasons counts dead letters by job and error, and calls the function each for every combination.
func (s *Store) Reasons(ctx context.Context, f LetterFilter, each func(Reason) error) error {
	c, err := s.condition(ctx, f)
	if err != nil {
		return err
	}
	return s.look(ctx, "count the dead letters", fmt.Sprintf(s.queries["dead_reasons"], c.text), c.args, func(row []string) (err error) {
		r := Reason{Job: row[0], Error: row[1], Example: row[5]}
		if r.Letters, err = strconv.ParseInt(row[2], 10, 64); err != nil {
			return err
		}
		if r.Oldest, err = letterTime(row[3]); err != nil {
			return err
		}
		if r.Newest, err = letterTime(row[4]); err != nil {
			return err
		}
		return each(r)
	})
}

// LettersWaiting returns, for each job, the number of dead letters that are in the database.
func (s *Store) LettersWaiting(ctx context.Context) (map[string]int64, error) {
	found := map[string]int64{}
	c, err := s.condition(ctx, LetterFilter{})
	if err != nil {
		return nil, err
	}
	err = s.look(ctx, "count the dead letters", fmt.Sprintf(s.queries["dead_waiting"], c.text), c.args, func(row []string) (err error) {
		found[row[0]], err = strconv.ParseInt(row[1], 10, 64)
		return err
	})
	return found, err
}

// LetterKey identifies a dead letter.
type LetterKey struct{ ID, Job string }

// lettersPage limits the ids that one query reads, and the letters that one transaction deletes.
const lettersPage = 5000

// LetterKeys returns the keys of all dead letters that match the filter, the oldest letter first.
func (s *Store) LetterKeys(ctx context.Context, f LetterFilter) ([]LetterKey, error) {
	var found []LetterKey
	at, id := "", ""
	own, err := s.condition(ctx, f)
	if err != nil {
		return nil, err
	}
	for {
		c := &where{own.text, slices.Clone(own.args)}
		if id != "" {
			c.add("(at > ? OR at = ? AND id > ?)", at, at, id)
		}
		before := len(found)
		err := s.look(ctx, "list the dead letters", fmt.Sprintf(s.queries["dead_keys"], c.text), append(c.args, lettersPage),
			func(row []string) error {
				at, id = row[0], row[1]
				found = append(found, LetterKey{ID: id, Job: row[2]})
				return nil
			})
		if err != nil || len(found)-before < lettersPage {
			return found, err
		}
	}
}

// DropLetters deletes dead letters and returns their number.
func (s *Store) DropLetters(ctx context.Context, ids []string) (dropped int64, err error) {
	if err := s.Migrate(ctx); err != nil { // older versions lack a table of this method
		return 0, err
	}
	err = s.transact(ctx, "drop dead letters", func(tx Session) error {
		dropped = 0
		tasks := []Task{{Query: "begin"}}
		for _, id := range ids {
			tasks = append(tasks, Task{Query: "dead_parts_drop", Args: []any{id}},
				Task{Query: "dead_drop", Args: []any{id}, Then: func(touched int64) error {
					dropped += touched
					return nil
				}})
		}
		if err := tx.Run(ctx, tasks...); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
	return dropped, err
}

// look runs a query that only reads. If baton's tables do not exist, look calls the function each for no row, and returns nil.
func (s *Store) look(ctx context.Context, doing, query string, args []any, each func(row []string) error) error {
	if s.database.Absent(&Report{}) {
		return nil
	}
	none := false
	err := s.transact(ctx, doing, func(tx Session) error {
		err := tx.Read(ctx, query, args, func(row []any) error { return each(texts(row)) })
		none = err != nil && s.dialect.LacksTable(err)
		return err
	})
	if none {
		return nil
	}
	return err
}

// where is the condition of a query. Its text contains a "?" for each value.
type where struct {
	text string
	args []any
}

// condition returns the condition that a letter matches the filter and does not belong to a job of another election.
func (s *Store) condition(ctx context.Context, f LetterFilter) (*where, error) {
	c := &where{}
	others, err := s.others(ctx)
	if err != nil {
		return nil, err
	}
	for _, job := range slices.Sorted(maps.Keys(others)) {
		c.add("job <> ?", job)
	}
	if f.Job != "" {
		c.add("job = ?", f.Job)
	}
	if f.Within > 0 {
		c.add("at >= "+s.dialect.Fragments.Ago, int64(f.Within/time.Second))
	}
	if f.Before > 0 {
		c.add("at < "+s.dialect.Fragments.Ago, int64(f.Before/time.Second))
	}
	s.contain(c, f.Text, "record", "error")
	return c, nil
}

// contain adds the condition that one of two columns contains the argument text literally. It adds no condition if the argument text is
// empty.
func (s *Store) contain(c *where, text, column, other string) {
	if text == "" {
		return
	}
	has := s.dialect.Fragments.Contains
	c.add("("+fmt.Sprintf(has, column)+" OR "+fmt.Sprintf(has, other)+")", text, text)
}

func (c *where) add(text string, args ...any) {
	c.text += map[bool]string{true: "WHERE ", false: " AND "}[c.text == ""] + text
	c.args = append(c.args, args...)
}

func letterOf(row []string) (l Letter, err error) {
	l = Letter{ID: row[0], Job: row[1], BatchID: row[2], Error: row[4], Record: row[5]}
	l.At, err = letterTime(row[3])
	return l, err
}

// letterTime parses a time that a query returned. Such a time is in UTC and has up to six decimals.
func letterTime(text string) (time.Time, error) {
	return time.Parse("2006-01-02 15:04:05.999999", strings.TrimSpace(text))
}
