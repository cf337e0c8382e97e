package verify

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// Differ compares rows that a pass has made from records with the rows in the table. It compares them as a verification does.
type Differ struct{}

var _ flush.Differ = Differ{}

// Differing implements flush.Differ.
func (Differ) Differing(ctx context.Context, sink flush.Sink, m *mapping.Mapping, rows []row.Row,
	own flush.OwnRows,
) ([]flush.Differs, error) {
	table, ok := sink.(Table)
	if !ok {
		return nil, errors.New("this database cannot look rows up by their keys")
	}
	plan := m.Plan()
	r := &comparison{Checker: &Checker{table: table, name: plan.Table.Name, m: m, skipped: make([]bool, len(plan.Columns))}}
	written := slices.IndexFunc(plan.Columns, func(c row.PlanColumn) bool { return c.Name == own.Column })
	if written >= 0 {
		r.skipped[written] = true
	}
	keys := make([][]row.Value, len(rows))
	at := make(map[string]int, len(rows))
	for i := range rows {
		keys[i] = r.keyOf(&rows[i])
		at[keyText(plan, keys[i])] = i
	}
	have, err := r.read(ctx, keys, func(text string) bool { _, wanted := at[text]; return wanted })
	if err != nil {
		return nil, err
	}
	found := make([]flush.Differs, len(rows))
	for text, cells := range have {
		i := at[text]
		found[i] = flush.RowDiffers
		if written >= 0 && isSince(cells[written], own.Since) {
			found[i] = flush.RowOwn
			continue
		}
		if rows[i].Delete {
			continue
		}
		columns, err := r.differing(ctx, rows[i], keys[i], cells)
		if err != nil {
			return nil, err
		}
		if len(columns) == 0 {
			found[i] = flush.RowEqual
		}
	}
	return found, nil
}

// isSince reports whether a cell contains a generation that is at least the argument since.
func isSince(cell row.Raw, since int64) bool {
	n, err := strconv.ParseInt(cell.Text, 10, 64)
	return cell.OK && err == nil && n >= since
}
