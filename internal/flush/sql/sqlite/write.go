package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

// writer writes rows one by one, because SQLite has no round trips that could be saved.
type writer struct {
	plans sql.PlanCache[*compiledPlan]
}

type compiledPlan struct {
	upsert, remove, update string
	columns                []planColumn
	every                  []int
	// deferred contains the keys that are checked at COMMIT. asked means that baton has read these keys.
	deferred []deferredKey
	asked    bool
}

// planColumn is a column of a plan. It says whether SQLite turns texts in the column into numbers, and whether values are added to the
// column.
type planColumn struct {
	row.Column
	numeric, add bool
}

// checkEvery is the number of rows after which the writer checks again whether ctx has ended.
const checkEvery = 256

func (w *writer) Write(ctx context.Context, s *stdsql.Session, p *row.Plan, rows []row.Row, remove bool) (int, int, error) {
	if len(rows) == 0 {
		return 0, 0, nil
	}
	plan := w.plans.Get(p, compile)
	text, columns := plan.upsert, plan.every
	if remove {
		text, columns = plan.remove, p.Key
	}
	err := s.PrepareRows(ctx, text) // an error of PrepareRows is not the fault of a row
	if err == nil {
		err = plan.ask(ctx, s, p)
	}
	if err != nil {
		return 0, 0, err
	}
	// This session holds the write lock and no statement waits here, so single rows need not be interrupted when ctx ends. With a context
	// that can end, the driver would start a goroutine for each row.
	calm := context.WithoutCancel(ctx)
	for i := range rows {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return i, 0, ctx.Err()
		}
		if err := plan.args(s, &rows[i], columns); err != nil {
			return i, 1, err
		}
		touched, err := plan.guarded(calm, s, text, &rows[i], remove)
		if err != nil {
			return i, 1, unplanned(err, p)
		}
		switch {
		case remove && !s.Replacing:
			s.Deleted += touched
		case touched == 0 && !remove:
			s.Ignored++
		}
	}
	return len(rows), 0, nil
}

// errUnplanned means that a column that the job does not write must not be NULL. The column was added to the table after the plan was made,
// so no row is at fault.
var errUnplanned = errors.New("the table has a NOT NULL column that the job does not write")

func unplanned(err error, p *row.Plan) error {
	_, table := quote.Schema(p.Table.Name)
	_, after, found := strings.Cut(err.Error(), "NOT NULL constraint failed: "+table+".")
	if column, _, _ := strings.Cut(after, " ("); found && !sql.HasColumn(p, column) {
		return fmt.Errorf("%w: %s", errUnplanned, column)
	}
	return err
}

func (w *writer) Update(ctx context.Context, s *stdsql.Session, p *row.Plan, row *row.Row) (int64, error) {
	plan := w.plans.Get(p, compile)
	if err := plan.ask(ctx, s, p); err != nil {
		return 0, err
	}
	if err := plan.args(s, row, stdsql.UpdateOrder(p)); err != nil {
		return 0, err
	}
	return plan.guarded(ctx, s, plan.update, row, false)
}

func (p *compiledPlan) args(s *stdsql.Session, row *row.Row, columns []int) error {
	s.Args = s.Args[:0]
	for _, c := range columns {
		v := &row.Values[c]
		if err := p.columns[c].check(v); err != nil {
			return err
		}
		s.Args = append(s.Args, sql.Argument(v))
	}
	return nil
}

func compile(p *row.Plan) *compiledPlan {
	out := &compiledPlan{}
	names := make([]string, len(p.Columns))
	var set, update []string
	for i, c := range p.Columns {
		out.every = append(out.every, i)
		out.columns = append(out.columns, planColumn{c.Column, isNumeric(c.DBType), c.Op == row.OpAdd})
		name := quote.Ident(c.Name)
		names[i] = name
		switch {
		case sql.IsKey(p, i):
		case c.Op == row.OpAdd:
			set = append(set, name+" = "+sumOf("t."+name, "excluded."+name))
			update = append(update, name+" = "+sumOf(name, "?"+strconv.Itoa(len(update)+1)))
		default:
			set = append(set, name+" = excluded."+name)
			update = append(update, name+" = ?"+strconv.Itoa(len(update)+1))
		}
	}
	key := make([]string, len(p.Key))
	where := make([]string, len(p.Key))
	whereUpdate := make([]string, len(p.Key))
	for i, k := range p.Key {
		key[i], where[i] = names[k], names[k]+" = ?"
		whereUpdate[i] = names[k] + " = ?" + strconv.Itoa(len(update)+i+1)
	}
	table := quote.Table(p.Table.Name)
	out.upsert = "INSERT INTO " + table + " AS t (" + strings.Join(names, ", ") + ") VALUES (" + sql.Repeat("?", len(names)) + ")"
	if len(update) == 0 && len(key) > 0 { // the statement only checks that the row exists
		update = append(update, key[0]+" = "+key[0])
	}
	if len(key) > 0 {
		out.upsert += conflict(p, key, set)
		out.remove = "DELETE FROM " + table + " WHERE " + strings.Join(where, " AND ")
		out.update = "UPDATE " + table + " SET " + strings.Join(update, ", ") + " WHERE " + strings.Join(whereUpdate, " AND ")
	}
	return out
}

// conflict returns the clause of an upsert that says what happens to existing rows.
func conflict(p *row.Plan, key, set []string) string {
	target := " ON CONFLICT (" + strings.Join(key, ", ") + ") DO "
	if p.Keep || len(set) == 0 {
		return target + "NOTHING"
	}
	return target + "UPDATE SET " + strings.Join(set, ", ")
}

// sumOf returns an expression that adds two numbers. On integer overflow SQLite continues with a float, which loses the last digits. So in
// that case the expression calls abs of the smallest integer, which raises an error.
func sumOf(a, b string) string {
	a, b = "COALESCE("+a+", 0)", "COALESCE("+b+", 0)"
	sum := a + " + " + b
	return "CASE WHEN typeof(" + sum + ") = 'real' AND typeof(" + a + ") = 'integer' AND typeof(" + b + ") = 'integer'" +
		" THEN abs(-9223372036854775808) ELSE " + sum + " END"
}

// isNumeric reports whether a column converts a text that looks like a number to a number, by SQLite's rules of affinity.
func isNumeric(declared string) bool {
	d := strings.ToUpper(declared)
	if d == "" {
		return false
	}
	if strings.Contains(d, "INT") {
		return true
	}
	for _, kept := range []string{"CHAR", "CLOB", "TEXT", "BLOB"} {
		if strings.Contains(d, kept) {
			return false
		}
	}
	return d != "ANY"
}

// check refuses a value that SQLite would change when it stores it.
func (c *planColumn) check(v *row.Value) error {
	switch v.Kind() {
	case row.KindFloat:
		if math.IsNaN(v.Float()) {
			return &sql.WrongValue{Column: c.Column, Why: "SQLite has no NaN, it would store NULL"}
		}
	case row.KindNull, row.KindInteger, row.KindBoolean, row.KindTimestamp, row.KindDate, row.KindBytes:
	default:
		if c.add && !isWhole(v.Text()) {
			return &sql.WrongValue{Column: c.Column, Why: fmt.Sprintf("SQLite would add %s as a float: declare the column REAL if a float "+
				"is exact enough, or count in the smallest unit", v.Text())}
		}
		if c.numeric && losesDigits(v.Text(), v.Kind()) {
			return &sql.WrongValue{Column: c.Column,
				Why: fmt.Sprintf("SQLite would store %s as a number and change it: declare the column TEXT", v.Text())}
		}
	}
	return nil
}

// isWhole reports whether SQLite adds the number as an integer.
func isWhole(number string) bool {
	whole, fraction, _ := strings.Cut(number, ".")
	_, err := strconv.ParseInt(whole, 10, 64)
	return err == nil && strings.Trim(fraction, "0") == ""
}

// losesDigits reports whether SQLite would lose digits of a text. SQLite stores a numeric text as an integer of 64 bits or as a float, and
// a float has 15 digits. SQLite does not change a text that is no number. A text that only looks like a number, such as 007, must be stored
// unchanged.
func losesDigits(text string, kind row.Kind) bool {
	if !strings.ContainsAny(text, "0123456789") || strings.ContainsAny(text, "xX_") {
		return false // for SQLite "inf", "nan" and "0x1p4" are no numbers
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return math.IsInf(f, 0)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	whole := err == nil
	if kind != row.KindNumeric && kind != row.KindJSON {
		return !whole || strconv.FormatInt(n, 10) != text
	}
	digits := significant(text)
	return !whole && (digits > 15 || digits > 0 && f == 0)
}

// significant returns the number of digits from the first digit that is not 0 to the last digit that is not 0.
func significant(number string) int {
	mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
	digits := strings.NewReplacer(".", "", "-", "", "+", "", " ", "").Replace(mantissa)
	return len(strings.Trim(digits, "0"))
}
