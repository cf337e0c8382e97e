package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

// SQLite checks a deferred foreign key at COMMIT, and does not say which row breaks it. So it is
// asked after each row, and a row that breaks it is refused as one that breaks any other key; one
// that refers to a later row of its batch is tried again after that.

// deferredKey is a foreign key of the table, or of another one that refers to it.
type deferredKey struct {
	child, parent string
	query         string // answers 1 if a row breaks it
	columns       []int  // of the plan, whose values the query takes
	removed       bool   // it is broken by a row that goes, not by one that comes
}

// brokenKey is a row that a deferred foreign key would refuse at COMMIT.
type brokenKey struct{ deferredKey }

func (e *brokenKey) Error() string {
	if e.removed {
		return fmt.Sprintf("FOREIGN KEY constraint failed: rows of table %q refer to it", e.child)
	}
	return fmt.Sprintf("FOREIGN KEY constraint failed: it refers to a row of table %q that is not there", e.parent)
}

// What surrounds a row whose table has deferred keys.
const (
	savepoint = "SAVEPOINT baton_row"
	undo      = "ROLLBACK TO SAVEPOINT baton_row"
	release   = "RELEASE SAVEPOINT baton_row"
)

// guarded writes a row by a statement, whose values are in s.Args, and refuses it if it breaks a
// deferred key. In a replacement the row that goes comes back.
func (p *compiledPlan) guarded(
	ctx context.Context, s *stdsql.Session, text string, row *row.Row, removed bool,
) (touched int64, err error) {
	if len(p.deferred) == 0 {
		return s.ExecRows(ctx, text)
	}
	if _, err := s.Exec(ctx, savepoint, nil); err != nil {
		return 0, err
	}
	touched, err = s.ExecRows(ctx, text)
	if err == nil && touched > 0 && (!removed || !s.Replacing) {
		err = p.breaks(ctx, s, row, removed)
	}
	if err == nil {
		_, err = s.Exec(ctx, release, nil)
		return touched, err
	}
	for _, end := range []string{undo, release} {
		if _, failed := s.Exec(ctx, end, nil); failed != nil {
			break // the whole transaction is gone: see intact
		}
	}
	return 0, err
}

// breaks is a *brokenKey if the row breaks one.
func (p *compiledPlan) breaks(ctx context.Context, s *stdsql.Session, row *row.Row, removed bool) error {
	for _, k := range p.deferred {
		if k.removed != removed {
			continue
		}
		args := make([]any, len(k.columns))
		for i, c := range k.columns {
			args[i] = sql.Argument(&row.Values[c])
		}
		statement, err := s.Prepare(ctx, k.query)
		if err != nil {
			return err
		}
		var broken bool
		if err := statement.QueryRowContext(ctx, args...).Scan(&broken); err != nil {
			return err
		}
		if broken {
			return &brokenKey{k}
		}
	}
	return nil
}

// ask finds the deferred keys of the plan's table, once.
func (p *compiledPlan) ask(ctx context.Context, s *stdsql.Session, plan *row.Plan) error {
	if p.asked {
		return nil
	}
	schema, table := quote.Schema(plan.Table.Name)
	if schema == "" {
		schema = "main"
	}
	query := fmt.Sprintf(s.Parent.Queries["deferred_keys"], quote.Ident(schema))
	rows, err := s.Conn.QueryContext(ctx, query, schema, table)
	if err != nil {
		return err
	}
	defer rows.Close() // Err tells what went wrong
	type pair struct{ from, to string }
	var keys []deferredKey
	var pairs [][]pair
	for rows.Next() {
		var k deferredKey
		var one pair
		var seq int
		if err := rows.Scan(&k.child, &k.parent, &seq, &one.from, &one.to); err != nil {
			return err
		}
		if seq == 0 {
			keys, pairs = append(keys, k), append(pairs, nil)
		}
		pairs[len(pairs)-1] = append(pairs[len(pairs)-1], one)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	p.asked = true
	for i, k := range keys {
		var from, to []string
		for _, one := range pairs[i] {
			from, to = append(from, one.from), append(to, one.to)
		}
		if strings.EqualFold(k.child, table) {
			p.comes(k, plan, schema, from, to)
		}
		if strings.EqualFold(k.parent, table) {
			p.goes(k, plan, schema, from, to)
		}
	}
	return nil
}

// comes checks a key of the plan's own table: the row that it refers to is there. A column that
// the plan does not write, or adds to, is left to COMMIT.
func (p *compiledPlan) comes(k deferredKey, plan *row.Plan, schema string, from, to []string) {
	var given, equal []string
	for i := range from {
		c := columnOf(plan, from[i])
		if to[i] == "" || c < 0 || plan.Columns[c].Op == row.OpAdd {
			return
		}
		k.columns = append(k.columns, c)
		given = append(given, fmt.Sprintf("?%d IS NOT NULL", i+1))
		equal = append(equal, fmt.Sprintf("%s = ?%d", quote.Ident(to[i]), i+1))
	}
	k.query = "SELECT " + strings.Join(given, " AND ") + " AND NOT EXISTS (SELECT 1 FROM " +
		quote.Ident(schema) + "." + quote.Ident(k.parent) + " WHERE " + strings.Join(equal, " AND ") + ")"
	p.deferred = append(p.deferred, k)
}

// goes checks a key that refers to the plan's table by its key: no row refers to one that is gone.
func (p *compiledPlan) goes(k deferredKey, plan *row.Plan, schema string, from, to []string) {
	k.removed = true
	var equal []string
	for i := range from {
		c := columnOf(plan, to[i])
		if !slices.Contains(plan.Key, c) {
			return
		}
		k.columns = append(k.columns, c)
		equal = append(equal, fmt.Sprintf("%s = ?%d", quote.Ident(from[i]), i+1))
	}
	k.query = "SELECT EXISTS (SELECT 1 FROM " + quote.Ident(schema) + "." + quote.Ident(k.child) + " WHERE " +
		strings.Join(equal, " AND ") + ")"
	p.deferred = append(p.deferred, k)
}

func columnOf(p *row.Plan, name string) int {
	return slices.IndexFunc(p.Columns, func(c row.PlanColumn) bool { return strings.EqualFold(c.Name, name) })
}
