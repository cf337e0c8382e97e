package sqlstore

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"baton/internal/flush"
)

// sweepStretch is how many rows of the table one statement looks at, so that it ends
// within the limit of its time however big the table is.
const sweepStretch = 20_000

var _ flush.StaleFinder = (*Store)(nil)

// CountStale counts rows of other passes: see flush.StaleFinder.
func (s *Store) CountStale(ctx context.Context, p *flush.Plan, current int64) (stale, all int64, err error) {
	err = s.walk(ctx, p, nil, func(w *walk, behind, edge []any) (bool, error) {
		q := w.query()
		other := q.place(q.number(current)) // first, as it stands there
		rows, err := q.read(ctx, fmt.Sprintf(s.queries["stale_count"], w.generation, w.table, q.between(behind, edge), other))
		if err != nil {
			return false, err
		}
		stale += number(rows[0][0])
		all += number(rows[0][1])
		return true, nil
	})
	return stale, all, err
}

// StaleRows reads rows of other passes: see flush.StaleFinder.
func (s *Store) StaleRows(ctx context.Context, p *flush.Plan, current int64, behind []flush.Value, limit int) ([][]string, error) {
	var found [][]string
	err := s.walk(ctx, p, behind, func(w *walk, behind, edge []any) (bool, error) {
		q := w.query()
		where := q.between(behind, edge)
		rows, err := q.read(ctx, fmt.Sprintf(s.queries["stale_rows"], w.list(), w.table, where, limit-len(found), w.generation, q.place(q.number(current))))
		if err != nil {
			return false, err
		}
		for _, row := range rows {
			found = append(found, w.texts(row))
		}
		return len(found) < limit, nil
	})
	return found, err
}

// walk is a way through a table in the order of its key, stretch by stretch.
type walk struct {
	store      *Store
	session    readSession
	plan       *flush.Plan
	table      string
	key        []string // quoted
	generation string   // quoted
}

// walk calls each for every stretch behind a key, until that answers false. A stretch
// goes from behind its first bound up to its second one; a bound that is nil is none.
func (s *Store) walk(ctx context.Context, p *flush.Plan, start []flush.Value, each func(w *walk, behind, edge []any) (bool, error)) error {
	const doing = "find rows that have vanished"
	opened, err := s.database.session(ctx)
	if err != nil {
		return s.failed(ctx, doing, err)
	}
	tx := opened.(readSession) // all of them are
	w := &walk{store: s, session: tx, plan: p}
	quote := map[string]quote{"postgres": pgQuote, "mysql": mysqlQuote, "sqlite": sqliteQuote}[s.driver]
	w.table = quote.table(p.Table.Name)
	for _, c := range p.Columns {
		w.key = append(w.key, quote.ident(c.Name))
	}
	last := len(w.key) - 1
	w.key, w.generation = w.key[:last], w.key[last]
	var behind []any
	for i := range start {
		behind = append(behind, tx.arg(&start[i]))
	}
	for more := true; more && err == nil; {
		var edge []any
		if edge, err = w.edge(ctx, behind); err == nil {
			more, err = each(w, behind, edge)
		}
		more = more && edge != nil
		behind = edge
	}
	tx.close(err == nil)
	return s.failed(ctx, doing, err)
}

// edge is the key that ends the stretch behind a key; nil if the table ends before.
func (w *walk) edge(ctx context.Context, behind []any) ([]any, error) {
	q := w.query()
	rows, err := q.read(ctx, fmt.Sprintf(w.store.queries["stale_edge"], w.list(), w.table, q.between(behind, nil), sweepStretch-1))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

func (w *walk) list() string { return strings.Join(w.key, ", ") }

// texts are a row as flush.StaleFinder has it.
func (w *walk) texts(row []any) []string {
	texts := make([]string, len(row))
	for i, v := range row {
		switch v := v.(type) {
		case []byte:
			texts[i] = string(v)
		default:
			texts[i] = fmt.Sprint(v)
		}
		if w.store.driver == "postgres" && w.plan.Columns[i].Kind == flush.KindBytes {
			raw, err := hex.DecodeString(strings.TrimPrefix(texts[i], `\x`))
			if err == nil {
				texts[i] = string(raw)
			}
		}
	}
	return texts
}

// walkQuery is one statement and its arguments.
type walkQuery struct {
	*walk
	args []any
}

func (w *walk) query() *walkQuery { return &walkQuery{walk: w} }

func (q *walkQuery) read(ctx context.Context, text string) ([][]any, error) {
	return q.session.read(ctx, text, q.args)
}

// place is where an argument stands.
func (q *walkQuery) place(arg any) string {
	q.args = append(q.args, arg)
	if q.store.driver == "postgres" {
		return "$" + strconv.Itoa(len(q.args))
	}
	return "?"
}

func (q *walkQuery) number(n int64) any {
	v := flush.Integer(n)
	return q.session.arg(&v)
}

// between is true of keys behind one bound and not behind the other one. A key with a
// NULL is nobody's.
func (q *walkQuery) between(behind, edge []any) string {
	var all []string
	for i := range q.key {
		if q.plan.Columns[i].Nullable {
			all = append(all, q.key[i]+" IS NOT NULL")
		}
	}
	if behind != nil {
		all = append(all, q.compare(">", ">", behind))
	}
	if edge != nil {
		all = append(all, q.compare("<", "<=", edge))
	}
	if len(all) == 0 {
		return "1 = 1"
	}
	return strings.Join(all, " AND ")
}

// compare compares the key with a bound; last is the operator of the last column. MySQL
// and MariaDB do not use an index for a comparison of rows.
func (q *walkQuery) compare(operator, last string, bound []any) string {
	if q.store.driver == "mysql" {
		return q.spell(operator, last, bound, 0)
	}
	places := make([]string, len(bound))
	for i := range bound {
		places[i] = q.place(bound[i])
	}
	return "(" + q.list() + ") " + last + " (" + strings.Join(places, ", ") + ")"
}

// spell compares from the i-th column on: a > 1 OR a = 1 AND (b > 2 OR ...).
func (q *walkQuery) spell(operator, last string, bound []any, i int) string {
	if i == len(bound)-1 {
		return q.key[i] + " " + last + " " + q.place(bound[i])
	}
	return "(" + q.key[i] + " " + operator + " " + q.place(bound[i]) + " OR " +
		q.key[i] + " = " + q.place(bound[i]) + " AND " + q.spell(operator, last, bound, i+1) + ")"
}

// number reads a count.
func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case []byte:
		n, _ := strconv.ParseInt(string(v), 10, 64)
		return n
	default:
		n, _ := strconv.ParseInt(fmt.Sprint(v), 10, 64)
		return n
	}
}
