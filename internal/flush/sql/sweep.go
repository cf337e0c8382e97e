package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// sweepStretch limits the number of rows that one statement reads, so that the statement ends within its time limit for a table of any
// size.
const sweepStretch = 20_000

var _ flush.StaleFinder = (*Store)(nil)

// CountStale implements flush.StaleFinder. It counts the rows that passes other than the current pass have written, and all rows.
func (s *Store) CountStale(ctx context.Context, p *row.Plan, current int64) (stale, all int64, err error) {
	err = s.walk(ctx, p, nil, func(w *tableWalk, behind, edge []any) (bool, error) {
		where, args := w.between(behind, edge)
		query := fmt.Sprintf(s.queries["stale_count"], w.generation, w.table, where)
		return true, w.session.Read(ctx, query, append([]any{current}, args...), func(row []any) error {
			some, err := integer(row[0])
			whole, wholeErr := integer(row[1])
			stale, all = stale+some, all+whole
			return errors.Join(err, wholeErr)
		})
	})
	return stale, all, err
}

// StaleRows implements flush.StaleFinder. It returns the rows that passes other than the current pass have written.
func (s *Store) StaleRows(ctx context.Context, p *row.Plan, current int64, behind []row.Value, limit int) ([][]string, error) {
	var found [][]string
	err := s.walk(ctx, p, behind, func(w *tableWalk, behind, edge []any) (bool, error) {
		where, args := w.between(behind, edge)
		query := fmt.Sprintf(s.queries["stale_rows"], w.list(), w.table, where, limit-len(found), w.generation)
		err := w.session.Read(ctx, query, append(args, current), func(row []any) error {
			found = append(found, texts(row))
			return nil
		})
		return len(found) < limit, err
	})
	return found, err
}

func arguments(values []row.Value) (args []any) {
	for i := range values {
		args = append(args, Argument(&values[i]))
	}
	return args
}

// tableWalk reads a table in the order of its key, one stretch (a limited number of rows) after the other.
type tableWalk struct {
	store      *Store
	session    Session
	plan       *row.Plan
	table      string
	key        []string // quoted names
	generation string   // quoted name
}

// walk calls the function each for every stretch of rows after a key, until that function returns false. A stretch begins after the key in
// the argument behind and ends with the key in the argument edge. A bound that is nil does not limit the stretch.
func (s *Store) walk(ctx context.Context, p *row.Plan, start []row.Value, each func(w *tableWalk, behind, edge []any) (bool, error)) error {
	const doing = "find rows that have vanished"
	tx, err := s.database.Session(ctx)
	if err != nil {
		return s.failed(ctx, doing, err)
	}
	w := s.newWalk(tx, p)
	last := len(w.key) - 1
	w.key, w.generation = w.key[:last], w.key[last]
	behind := arguments(start)
	err = s.byIndex(ctx, tx)
	for more := true; more && err == nil; {
		var edge []any
		if edge, err = w.edge(ctx, behind); err == nil {
			more, err = each(w, behind, edge)
		}
		more = more && edge != nil
		behind = edge
	}
	tx.Close(err == nil)
	return s.failed(ctx, doing, err)
}

// newWalk returns a walk in the order of all columns of a plan.
func (s *Store) newWalk(session Session, p *row.Plan) *tableWalk {
	w := &tableWalk{store: s, session: session, plan: p, table: s.dialect.Quote.Table(p.Table.Name)}
	for _, c := range p.Columns {
		w.key = append(w.key, s.dialect.Quote.Ident(c.Name))
	}
	return w
}

// edge returns the key that ends the stretch after a key, or nil if the table ends before the stretch is full.
func (w *tableWalk) edge(ctx context.Context, behind []any) (edge []any, err error) {
	where, args := w.between(behind, nil)
	query := fmt.Sprintf(w.store.queries["stale_edge"], w.list(), w.table, where, sweepStretch-1)
	err = w.session.Read(ctx, query, args, func(row []any) error {
		edge = row
		return nil
	})
	return edge, err
}

func (w *tableWalk) list() string { return strings.Join(w.key, ", ") }

// between returns a condition that is true for keys after the lower bound (behind) and up to the upper bound (edge). The condition is never
// true for a key with NULL.
func (w *tableWalk) between(behind, edge []any) (where string, args []any) {
	var all []string
	for i := range w.key {
		if w.plan.Columns[i].Nullable {
			all = append(all, w.key[i]+" IS NOT NULL")
		}
	}
	if behind != nil {
		all = append(all, w.compare(">", ">", behind, &args))
	}
	if edge != nil {
		all = append(all, w.compare("<", "<=", edge, &args))
	}
	if len(all) == 0 {
		return "1 = 1", args
	}
	return strings.Join(all, " AND "), args
}

// compare returns a condition that compares the key with a bound. The last column is compared with the operator in the argument last.
func (w *tableWalk) compare(operator, last string, bound []any, args *[]any) string {
	if !w.store.dialect.ComparesRows {
		return w.spell(operator, last, bound, args, 0)
	}
	*args = append(*args, bound...)
	return "(" + w.list() + ") " + last + " (" + Repeat("?", len(bound)) + ")"
}

// spell returns a comparison from the i-th column on: a > 1 OR a = 1 AND (b > 2 OR ...).
func (w *tableWalk) spell(operator, last string, bound []any, args *[]any, i int) string {
	*args = append(*args, bound[i])
	if i == len(bound)-1 {
		return w.key[i] + " " + last + " ?"
	}
	*args = append(*args, bound[i])
	return "(" + w.key[i] + " " + operator + " ? OR " +
		w.key[i] + " = ? AND " + w.spell(operator, last, bound, args, i+1) + ")"
}
