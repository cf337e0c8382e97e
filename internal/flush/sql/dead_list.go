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

// Errors of the search for one dead letter, matched by errors.Is.
var (
	// ErrNoLetter: no dead letter with such an id exists here now.
	ErrNoLetter = errors.New("no such dead letter")
	// ErrManyLetters: several dead letters have an id that begins so.
	ErrManyLetters = errors.New("several dead letters have an id that begins so")
)

// Letter is one dead letter as the database has it.
type Letter struct {
	ID, Job, BatchID string
	At               time.Time // when it was written, by the database's clock
	Record           string    // see flush.RecordJSON
	Error            string    // why
}

// LetterFilter picks dead letters: those that match every field that is set.
type LetterFilter struct {
	Job    string
	Within time.Duration // not older than this; whole seconds
	Before time.Duration // older than this; whole seconds
	Text   string        // stands in the record or in the error, letter by letter
}

// Letters lists dead letters, the newest first, at most limit. It cuts their records to that many characters; 0 leaves them whole.
func (s *Store) Letters(ctx context.Context, f LetterFilter, limit, record int) ([]Letter, error) {
	c, err := s.condition(ctx, f)
	if err != nil {
		return nil, err
	}
	return s.letters(ctx, "list the dead letters", c, limit, record)
}

// letters reads the dead letters that meet a condition, the newest first. what names the step in errors.
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

// Letter finds the one dead letter whose id is, or begins with, id.
func (s *Store) Letter(ctx context.Context, id string) (Letter, error) {
	if !letterID.MatchString(id) {
		return Letter{}, fmt.Errorf("%w: %q is no id, nor the beginning of one: want up to 32 of 0-9 and a-f", ErrNoLetter, id)
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
		return Letter{}, fmt.Errorf("%w: %s: give more of it", ErrManyLetters, id)
	}
	letter := found[0]
	whole, err := s.whole(ctx, letter.ID)
	if whole != "" {
		letter.Record = whole
	}
	return letter, err
}

// whole joins the parts of a letter's record; "" if it has none.
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
	Example        string // the id of one of them
}

// Reasons counts dead letters by job and error.
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

// LettersWaiting counts the dead letters that there are now, by job.
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

// lettersPage is how many ids are read, or letters dropped, at a time.
const lettersPage = 5000

// LetterKeys names the dead letters that there are now, the oldest first.
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
	if err := s.Migrate(ctx); err != nil { // to a table that older versions do not have
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

// look runs a query that only reads. A database without baton's tables has no dead letters.
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

// where is the condition of a query. Its texts have a ? for each value.
type where struct {
	text string
	args []any
}

// condition is that of the filter, over the letters of this election.
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
		c.add("at >= "+s.dialect.Words.Ago, int64(f.Within/time.Second))
	}
	if f.Before > 0 {
		c.add("at < "+s.dialect.Words.Ago, int64(f.Before/time.Second))
	}
	if f.Text != "" {
		has := s.dialect.Words.Contains
		c.add("("+fmt.Sprintf(has, "record")+" OR "+fmt.Sprintf(has, "error")+")", f.Text, f.Text)
	}
	return c, nil
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

// letterTime parses a time of the queries: UTC, with up to six decimals.
func letterTime(text string) (time.Time, error) {
	return time.Parse("2006-01-02 15:04:05.999999", strings.TrimSpace(text))
}
