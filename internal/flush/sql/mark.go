package sql

import (
	"context"
	"slices"
	"strings"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// Marks implements flush.Sink. It returns the flushed totals of counters.
//
// Marks are in a separate table, because there may be millions of marks, and queries for the few positions must not read them.
func (s *Store) Marks(ctx context.Context, f flush.Fence, names []string) ([]string, error) {
	return s.recorded(ctx, f, "marks", markName, names)
}

// mark records the totals that the batch's counters have after the batch.
func (a *application) mark(ctx context.Context, tx Session) error {
	if len(a.batch.Marks) == 0 {
		return nil
	}
	rows := make([]row.Row, len(a.batch.Marks))
	text := func(s string) row.Value { return row.String(row.KindText, s) }
	for i, m := range a.batch.Marks {
		rows[i].Values = []row.Value{text(a.fence.Job), text(markName(m.Name)), text(m.Value)}
	}
	slices.SortFunc(rows, func(x, y row.Row) int { return strings.Compare(x.Values[1].Text(), y.Values[1].Text()) })
	return tx.Run(ctx, Task{Plan: a.store.marks, Rows: rows})
}

// newMarksPlan returns a plan that writes to the table of marks like a job's plan.
func newMarksPlan(textType, prefix string) *row.Plan {
	p := &row.Plan{Table: row.Table{Name: prefix + "mark"}, Key: []int{0, 1}}
	for _, name := range []string{"job", "name", "total"} {
		p.Columns = append(p.Columns, row.PlanColumn{Column: row.Column{Name: name, Kind: row.KindText, DBType: textType}})
	}
	return p
}
