package mysql

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

const (
	// chunkRows is the number of rows in one full statement.
	chunkRows = 1000
	// deletes is the number of rows in one full DELETE. It is less than 1000, because from 1000 values on MariaDB turns IN into a subquery.
	deletes = 500
	// few is the number of rows up to which a piece is written by one statement of exactly that size.
	few = 32
	// params is the protocol's limit for the number of parameters in a prepared statement.
	params = 65535
)

// writer writes rows by statements that contain many rows.
type writer struct {
	plans sql.PlanCache[*compiledPlan]
	// numberless means that the server does not number refused rows.
	numberless atomic.Bool
}

// compiledPlan contains the texts of a plan's statements, by their number of rows.
type compiledPlan struct {
	every         []int // the indexes of all columns
	badRowNumbers badRowNumbers

	mu                       sync.Mutex // guards the fields below
	upserts, counted, remove map[int]string
}

func (w *writer) Write(ctx context.Context, s *stdsql.Session, p *row.Plan, rows []row.Row, remove bool) (int, int, error) {
	done := 0
	for done < len(rows) {
		n := chunk(len(rows)-done, len(p.Columns), remove)
		if left := len(rows) - done; s.Guarded && left <= few {
			n = left
		}
		text, columns := w.statement(s, p, n, remove)
		err := args(s, p, rows[done:done+n], columns)
		var touched int64
		if err == nil {
			touched, err = s.ExecRows(ctx, text)
		}
		if err != nil {
			return done, n, err
		}
		if remove && !s.Replacing {
			s.Deleted += touched
		}
		done += n
	}
	return done, 0, nil
}

// chunk returns the number of rows in the next statement, which is either the maximum or a power of two. So a plan has at most a dozen
// statements, and each of them is prepared once.
func chunk(rows, columns int, remove bool) int {
	full := chunkRows
	if remove {
		full = deletes
	}
	full = max(1, min(full, params/max(1, columns)))
	if rows >= full {
		return full
	}
	n := 1
	for n*2 <= rows {
		n *= 2
	}
	return n
}

// statement returns the text of the statement for n rows, and the columns of its parameters.
func (w *writer) statement(s *stdsql.Session, p *row.Plan, n int, remove bool) (string, []int) {
	plan := w.plans.Get(p, newPlan)
	plan.mu.Lock()
	defer plan.mu.Unlock()
	texts, compile, columns := plan.upserts, upsert, plan.every
	switch {
	case remove:
		texts, compile, columns = plan.remove, deleteText, p.Key
	case s.Guarded && w.counts(p):
		texts, compile = plan.counted, countedUpsert
	}
	text, ok := texts[n]
	if !ok {
		text = compile(p, n)
		texts[n] = text
	}
	return text, columns
}

func newPlan(p *row.Plan) *compiledPlan {
	out := &compiledPlan{upserts: map[int]string{}, counted: map[int]string{}, remove: map[int]string{}}
	for i := range p.Columns {
		out.every = append(out.every, i)
	}
	return out
}

// upsert returns the text of a statement that writes n rows.
func upsert(p *row.Plan, n int) string {
	return upsertOf(p, sql.Repeat("("+sql.Repeat("?", len(p.Columns))+")", n))
}

// countedUpsert is like upsert, but the statement counts its rows.
func countedUpsert(p *row.Plan, n int) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = "(" + counted(i+1) + strings.Repeat(", ?", len(p.Columns)-1) + ")"
	}
	return upsertOf(p, strings.Join(rows, ", "))
}

// upsertOf returns the text of an upsert for rows whose parameters are in the argument rows. It uses VALUES(), which is deprecated in
// MySQL, because MariaDB has no other form.
func upsertOf(p *row.Plan, rows string) string {
	names := make([]string, len(p.Columns))
	var changed, value []string
	for i, c := range p.Columns {
		name := quote.Ident(c.Name)
		names[i] = name
		switch {
		case sql.IsKey(p, i) || p.Keep:
			continue
		case c.Op == row.OpAdd:
			value = append(value, fmt.Sprintf("COALESCE(%[1]s, 0) + COALESCE(VALUES(%[1]s), 0)", name))
		default:
			value = append(value, "VALUES("+name+")")
		}
		changed = append(changed, name)
	}
	text := "INSERT INTO " + quote.Table(p.Table.Name) + " (" + strings.Join(names, ", ") + ") VALUES " + rows
	if len(p.Key) == 0 {
		return text
	}
	if len(changed) == 0 { // keep the existing row (INSERT IGNORE would hide every other error)
		changed = []string{names[p.Key[0]]}
		value = changed
	}
	set := []string{changed[0] + " = IF(" + sameRow(p) + ", " + value[0] + ", " + changed[0] + ")"}
	for i := 1; i < len(changed); i++ {
		set = append(set, changed[i]+" = "+value[i])
	}
	return text + " ON DUPLICATE KEY UPDATE " + strings.Join(set, ", ")
}

// sameRow returns a condition that is true for the row with the key. ON DUPLICATE KEY UPDATE also reacts to a row found by another unique
// index, and would change that row instead. For such a row the value of the condition is a text that is no number. This is an error in
// strict mode, so the new row is refused. The text contains the key of the found row, and CONCAT_WS never returns NULL for it.
func sameRow(p *row.Plan) string {
	key := make([]string, len(p.Key))
	same := make([]string, len(p.Key))
	for i, k := range p.Key {
		key[i] = quote.Ident(p.Columns[k].Name)
		same[i] = fmt.Sprintf("%[1]s <=> VALUES(%[1]s)", key[i])
	}
	return strings.Join(same, " AND ") + " OR 0 + CONCAT_WS(' ', 'another row has a unique value of this one:', " +
		strings.Join(key, ", ") + ")"
}

func deleteText(p *row.Plan, n int) string {
	return "DELETE FROM " + quote.Table(p.Table.Name) + " WHERE " + hasKey(p, n)
}

// hasKey returns a condition that is true for rows whose key is one of n keys. It compares a composite key with OR, because for (a, b) IN
// (…) MariaDB reads the whole index.
func hasKey(p *row.Plan, n int) string {
	if len(p.Key) == 1 {
		return quote.Ident(p.Columns[p.Key[0]].Name) + " IN (" + sql.Repeat("?", n) + ")"
	}
	same := make([]string, len(p.Key))
	for i, k := range p.Key {
		same[i] = quote.Ident(p.Columns[k].Name) + " = ?"
	}
	row := "(" + strings.Join(same, " AND ") + ")"
	return strings.TrimSuffix(strings.Repeat(row+" OR ", n), " OR ")
}

func args(s *stdsql.Session, p *row.Plan, rows []row.Row, columns []int) error {
	s.Args = s.Args[:0]
	for i := range rows {
		for _, c := range columns {
			v := &rows[i].Values[c]
			if v.Kind() == row.KindFloat && (math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0)) {
				return &sql.WrongValue{Column: p.Columns[c].Column, Why: "MySQL has no NaN and no infinity"}
			}
			s.Args = append(s.Args, sql.Argument(v))
		}
	}
	return nil
}
