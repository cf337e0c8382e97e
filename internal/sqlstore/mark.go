package sqlstore

import (
	"context"
	"slices"
	"strings"

	"baton/internal/flush"
)

// Marks reads the totals that counters have been flushed up to: see flush.Sink.
//
// They have a table of their own. There may be millions of them, and what looks at
// the few positions must not wade through those.
func (s *Store) Marks(ctx context.Context, f flush.Fence, names []string) ([]string, error) {
	return s.recorded(ctx, f, "marks", stored(markName, names))
}

// mark sets the totals that the batch's differences lead to.
func (a *application) mark(ctx context.Context, tx session) error {
	if len(a.batch.Marks) == 0 {
		return nil
	}
	rows := make([]flush.Row, len(a.batch.Marks))
	text := func(s string) flush.Value { return flush.String(flush.KindText, s) }
	for i, m := range a.batch.Marks {
		rows[i].Values = []flush.Value{text(a.fence.Job), text(markName(m.Name)), text(m.Value)}
	}
	slices.SortFunc(rows, func(x, y flush.Row) int { return strings.Compare(x.Values[1].Text(), y.Values[1].Text()) })
	if err := tx.run(ctx, task{plan: a.store.marks, rows: rows}); err != nil {
		return err
	}
	return a.store.at(StepAfterMarks)
}

// newMarksPlan writes to the table of marks as if it were a job's table.
func newMarksPlan(driver, prefix string) *flush.Plan {
	types := map[string]string{"postgres": "text", "mysql": "varchar(255)", "sqlite": "TEXT"}
	p := &flush.Plan{Table: flush.Table{Name: prefix + "mark"}, Key: []int{0, 1}}
	for _, name := range []string{"job", "name", "total"} {
		p.Columns = append(p.Columns, flush.PlanColumn{Column: flush.Column{Name: name, Kind: flush.KindText, DBType: types[driver]}})
	}
	return p
}
