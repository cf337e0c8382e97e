package mysql

import (
	"context"
	"fmt"
	"strings"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

// summand returns the SQL text of the parameter that is added to a column. Exact numbers are sent as texts and cast, because MySQL would
// add a text as a float.
func summand(c row.Column) string {
	if c.Kind != row.KindNumeric {
		return "?"
	}
	if c.Precision == 0 {
		c.Precision, c.Scale = 65, 30 // the maximum of the server
	}
	return fmt.Sprintf("CAST(? AS DECIMAL(%d,%d))", c.Precision, c.Scale)
}

func (w *writer) Update(ctx context.Context, s *stdsql.Session, p *row.Plan, r *row.Row) (int64, error) {
	var set, where []string
	for i, c := range p.Columns {
		name := quote.Ident(c.Name)
		switch {
		case sql.IsKey(p, i):
		case c.Op == row.OpAdd:
			set = append(set, fmt.Sprintf("%s = COALESCE(%[1]s, 0) + COALESCE(%s, 0)", name, summand(c.Column)))
		default:
			set = append(set, name+" = ?")
		}
	}
	for _, k := range p.Key {
		where = append(where, quote.Ident(p.Columns[k].Name)+" = ?")
	}
	if len(set) == 0 { // the statement only checks that the row exists
		name := quote.Ident(p.Columns[p.Key[0]].Name)
		set = []string{name + " = " + name}
	}
	if err := args(s, p, []row.Row{*r}, stdsql.UpdateOrder(p)); err != nil {
		return 0, err
	}
	text := "UPDATE " + quote.Table(p.Table.Name) + " SET " + strings.Join(set, ", ") + " WHERE " + strings.Join(where, " AND ")
	return s.Exec(ctx, text, s.Args)
}
