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

// SQLite checks a deferred foreign key at COMMIT, and does not say which row violates the key. So baton checks the key after each row, and
// refuses a row that violates the key, as for any other key. A row that refers to a later row of its batch is tried again after that row.

// deferredKey is a deferred foreign key of the plan's table, or of another table that refers to the plan's table.
type deferredKey struct {
	child, parent string
	query         string // returns 1 if a row violates the key
	columns       []int  // indexes of the plan's columns whose values the query needs
	removed       bool   // a deleted row can violate the key, and an inserted row cannot
}

// brokenKey is the error for a row that a deferred foreign key would refuse at COMMIT.
type brokenKey struct{ deferredKey }

func (e *brokenKey) Error() string {
	if e.removed {
		return fmt.Sprintf("FOREIGN KEY constraint failed: rows of table %q refer to this row", e.child)
	}
	return fmt.Sprintf("FOREIGN KEY constraint failed: the row refers to a row of table %q that does not exist", e.parent)
}

// These statements precede and follow the writing of a row whose table has deferred keys.
const (
	savepoint = "SAVEPOINT baton_row"
	undo      = "ROLLBACK TO SAVEPOINT baton_row"
	release   = "RELEASE SAVEPOINT baton_row"
)

// guarded writes a row by a statement with the arguments s.Args, and refuses the row if it violates a deferred key. If the row replaces an
// old row, the old row is restored.
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
			break // the whole transaction has ended: see intact
		}
	}
	return 0, err
}

// breaks returns a *brokenKey if the row violates a deferred key.
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

// ask finds out which deferred keys concern the plan's table. It asks the database only once for each plan.
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
	defer rows.Close() // errors are reported by rows.Err
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

// comes prepares the check of a key of the plan's own table: the row to which an inserted row refers must exist. If the plan does not write
// a column of the key, or adds to such a column, only COMMIT checks the key.
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

// goes prepares the check of a key of another table that refers to the plan's table: no row may refer to a removed row.
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
