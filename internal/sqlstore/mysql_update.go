package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"baton/internal/flush"
)

// updateOrder is the order of an UPDATE's parameters: what is set, then the key.
func updateOrder(p *flush.Plan) []int {
	out := make([]int, 0, len(p.Columns))
	for i := range p.Columns {
		if !isKey(p, i) {
			out = append(out, i)
		}
	}
	return append(out, p.Key...)
}

// mysqlSummand is the parameter for what is added to a column. Exact numbers travel
// as texts, and MySQL would add a text as a float.
func mysqlSummand(c flush.Column) string {
	if c.Kind != flush.KindNumeric {
		return "?"
	}
	if c.Precision == 0 {
		c.Precision, c.Scale = 65, 30 // the most that there is
	}
	return fmt.Sprintf("CAST(? AS DECIMAL(%d,%d))", c.Precision, c.Scale)
}

func (w *mysqlWriter) update(ctx context.Context, s *sqlSession, p *flush.Plan, row *flush.Row) (int64, error) {
	var set, where []string
	for i, c := range p.Columns {
		name := mysqlQuote.ident(c.Name)
		switch {
		case isKey(p, i):
		case c.Op == flush.OpAdd:
			set = append(set, fmt.Sprintf("%s = COALESCE(%[1]s, 0) + COALESCE(%s, 0)", name, mysqlSummand(c.Column)))
		default:
			set = append(set, name+" = ?")
		}
	}
	for _, k := range p.Key {
		where = append(where, mysqlQuote.ident(p.Columns[k].Name)+" = ?")
	}
	if len(set) == 0 { // it is only asked whether the row is there
		name := mysqlQuote.ident(p.Columns[p.Key[0]].Name)
		set = []string{name + " = " + name}
	}
	if err := mysqlArgs(s, p, []flush.Row{*row}, updateOrder(p)); err != nil {
		return 0, err
	}
	text := "UPDATE " + mysqlQuote.table(p.Table.Name) + " SET " + strings.Join(set, ", ") + " WHERE " + strings.Join(where, " AND ")
	return s.exec(ctx, text, s.args)
}
