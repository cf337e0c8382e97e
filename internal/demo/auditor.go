package demo

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
)

// findings are the results of an audit.
type findings struct {
	lost       int64 // missing increments, and rows that are missing, stale or not deleted
	duplicated int64 // surplus increments, and rows that were not written
	flushed    amount
	examples   []string // descriptions of some losses and duplicates
}

// maxExamples limits how many findings an audit describes by a sentence. All findings are counted.
const maxExamples = 10

// audit compares the tables with the acknowledged writes. It reads them with plain queries and compares every value.
func audit(ctx context.Context, db *sql.DB, want *expected) (findings, error) {
	var f findings
	counts, err := readCounts(ctx, db, articlesQuery)
	if err != nil {
		return f, fmt.Errorf("audit the table articles: %w", err)
	}
	rows, err := readUsers(ctx, db)
	if err != nil {
		return f, fmt.Errorf("audit the table users: %w", err)
	}
	want.mu.Lock()
	defer want.mu.Unlock()
	f.counters(want.counts, counts)
	f.hashes(want, rows)
	return f, nil
}

func (f *findings) counters(want, got map[string]int64) {
	for _, article := range union(want, got) {
		f.flushed.Counters += got[article]
		switch diff := got[article] - want[article]; {
		case diff < 0:
			f.lost -= diff
			f.example("article %s: %d increments written, %d in the table", article, want[article], got[article])
		case diff > 0:
			f.duplicated += diff
			f.example("article %s: %d increments written, %d in the table", article, want[article], got[article])
		}
	}
}

func (f *findings) hashes(want *expected, rows map[int64]user) {
	f.flushed.Hashes = want.written.Hashes
	wrong := func(format string, args ...any) {
		f.lost++
		f.flushed.Hashes-- // at least the last change of the row is missing
		f.example(format, args...)
	}
	for _, id := range union(want.users, rows) {
		last, written := want.users[id]
		row, there := rows[id]
		switch {
		case !written:
			f.duplicated++
			f.example("user %d: was never written, but is in the table", id)
		case last.deleted && there:
			wrong("user %d: was deleted by change %d, but is still in the table, from change %d", id, last.version, row.version)
		case last.deleted:
		case !there:
			wrong("user %d: was written by change %d, but is not in the table", id, last.version)
		case row != last:
			wrong("user %d: the table has change %d (%q, %q), the last was %d (%q, %q)",
				id, row.version, row.name, row.note, last.version, last.name, last.note)
		}
	}
}

func (f *findings) example(format string, args ...any) {
	if len(f.examples) < maxExamples {
		f.examples = append(f.examples, fmt.Sprintf(format, args...))
	}
}

// These queries read the counts that the nodes and the naive program have written.
const (
	articlesQuery = "SELECT id, views FROM articles"
	naiveQuery    = "SELECT id, views FROM " + naiveTable
)

func readCounts(ctx context.Context, db *sql.DB, query string) (map[string]int64, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := map[string]int64{}
	for rows.Next() {
		var id string
		var views int64
		if err := rows.Scan(&id, &views); err != nil {
			return nil, err
		}
		counts[id] = views
	}
	return counts, rows.Err()
}

func readUsers(ctx context.Context, db *sql.DB) (map[int64]user, error) {
	rows, err := db.QueryContext(ctx, "SELECT id, name, note, version FROM users")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	users := map[int64]user{}
	for rows.Next() {
		var id int64
		var u user
		var note sql.NullString
		if err := rows.Scan(&id, &u.name, &note, &u.version); err != nil {
			return nil, err
		}
		if u.note = note.String; !note.Valid {
			u.note = "NULL" // a text that the generator never writes
		}
		users[id] = u
	}
	return users, rows.Err()
}

// union returns the sorted keys of both maps.
func union[K cmp.Ordered, A, B any](a map[K]A, b map[K]B) []K {
	var keys []K
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, both := a[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}
