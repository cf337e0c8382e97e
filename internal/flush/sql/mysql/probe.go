package mysql

import (
	"context"
	"strings"

	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

// probe finds out by one statement whether any of the task's rows might be written. INSERT IGNORE writes every row that INSERT would write,
// and may write more rows. If it writes no row, INSERT would also write no row. The caller undoes the writes of probe.
//
// INSERT IGNORE does not write rows that could be updated but not inserted. Such rows must exist in the table, so for a task with Update,
// probe first looks for existing rows.
func probe(ctx context.Context, s *stdsql.Session, t sql.Task) (touched int64, err error) {
	n := 1
	for n < len(t.Rows) {
		n *= 2
	}
	if n*len(t.Plan.Columns) > params {
		return int64(len(t.Rows)), nil
	}
	rows := t.Rows
	for len(rows) < n { // so that there are few statements, each prepared once
		rows = append(rows, t.Rows[0])
	}
	if t.Update {
		if err := args(s, t.Plan, rows, t.Plan.Key); err != nil {
			return 0, err
		}
		text := "SELECT 1 FROM " + quote.Table(t.Plan.Table.Name) + " WHERE " + hasKey(t.Plan, n) + " LIMIT 1"
		if err := s.Read(ctx, text, s.Args, func([]any) error { touched++; return nil }); touched > 0 || err != nil {
			return touched, err
		}
	}
	every := make([]int, len(t.Plan.Columns))
	for i := range every {
		every[i] = i
	}
	if err := args(s, t.Plan, rows, every); err != nil {
		return 0, err
	}
	return s.Exec(ctx, strings.Replace(upsert(t.Plan, n), "INSERT INTO", "INSERT IGNORE INTO", 1), s.Args)
}
