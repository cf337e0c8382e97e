package sql

import (
	"context"
	"fmt"
	"strings"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

var _ flush.KeyLister = (*Store)(nil)

// KeyRows implements flush.KeyLister. It returns the keys of the rows in a range.
func (s *Store) KeyRows(ctx context.Context, p *row.Plan, which flush.KeyRange) ([][]string, error) {
	const doing = "list the keys of a table"
	tx, err := s.database.Session(ctx)
	if err != nil {
		return nil, s.failed(ctx, doing, err)
	}
	var found [][]string
	if len(which.Of) <= 1 {
		err = s.byIndex(ctx, tx)
	}
	if err == nil {
		found, err = s.keyRows(ctx, tx, p, which)
	}
	tx.Close(err == nil)
	return found, s.failed(ctx, doing, err)
}

// keyRows works like KeyRows, on one connection. It skips keys that a column cannot contain because its character set lacks one of their
// characters.
func (s *Store) keyRows(ctx context.Context, tx Session, p *row.Plan, which flush.KeyRange) (found [][]string, err error) {
	query, args := s.newWalk(tx, p).listing(which)
	err = tx.Read(ctx, query, args, func(row []any) error {
		found = append(found, texts(row))
		return nil
	})
	if err == nil || len(which.Of) == 0 || s.dialect.Judge(err) != Refused {
		return found, err
	}
	found = nil
	for _, half := range halves(which.Of) {
		some, err := s.keyRows(ctx, tx, p, flush.KeyRange{Of: half, Limit: which.Limit})
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found[:min(len(found), which.Limit)], nil
}

// halves returns the two halves of a list. It returns nothing for a list with fewer than two elements.
func halves[T any](all []T) [][]T {
	if len(all) < 2 {
		return nil
	}
	return [][]T{all[:len(all)/2], all[len(all)/2:]}
}

// byIndex makes the next query read an index up to the query's limit. Without statistics, as for a table that was just filled, PostgreSQL
// expects few rows after a key. It would then read and sort all rows after the key for each page.
func (s *Store) byIndex(ctx context.Context, tx Session) error {
	if !s.guesses() {
		return nil
	}
	return tx.Run(ctx, Task{Query: "begin"}, Task{Query: "by_index"})
}

// guesses reports whether the database plans queries by estimated numbers of rows, even without statistics.
func (s *Store) guesses() bool { return s.queries["by_index"] != "" }

// listing returns the statement that lists the keys of a range.
func (w *tableWalk) listing(which flush.KeyRange) (query string, args []any) {
	keys := len(w.plan.Key)
	others := w.key[keys:]
	w.key = w.key[:keys]
	columns := w.list()
	if len(others) > 0 {
		columns += ", CASE WHEN " + strings.Join(others, " IS NOT NULL OR ") + " IS NOT NULL THEN '" + row.Listed + "' ELSE '' END"
	}
	where, args := w.between(nil, nil)
	rest := *w
	if len(which.Of) > 0 {
		rest.key = w.key[len(which.Of[0]):]
		where += " AND " + w.beginsWith(which.Of, &args)
	}
	lead := keys - len(rest.key)
	order := ""
	switch {
	case len(which.Of) > 1:
		if lead == 1 && w.store.guesses() {
			order = w.list() // otherwise the database estimates that 64 keys select a third of the table, and reads the whole table
		}
	case len(rest.key) == 0:
		if which.Behind != nil {
			where += " AND 1 = 0" // only one row has that key
		}
	default:
		// The order does not name all columns of the key, because MariaDB would sort by the leading columns although they are constant.
		order = rest.list()
		if which.Behind != nil {
			where += " AND " + rest.compare(">", ">", arguments(which.Behind[lead:]), &args)
		}
	}
	if order != "" {
		order = " ORDER BY " + order
	}
	return fmt.Sprintf(w.store.queries["key_rows"], columns, w.table, where, order, which.Limit), args
}

// beginsWith returns the condition that a key begins with one of these prefixes. The number of placeholders is a power of two, so that few
// different statements are prepared.
func (w *tableWalk) beginsWith(of [][]row.Value, args *[]any) string {
	places := 1
	for places < len(of) {
		places *= 2
	}
	for i := range places {
		*args = append(*args, arguments(of[min(i, len(of)-1)])...)
	}
	columns := w.key[:len(of[0])]
	if len(columns) == 1 {
		return columns[0] + " IN (" + Repeat("?", places) + ")"
	}
	one := "(" + strings.Join(columns, " = ? AND ") + " = ?)"
	return "(" + strings.TrimSuffix(strings.Repeat(one+" OR ", places), " OR ") + ")"
}
