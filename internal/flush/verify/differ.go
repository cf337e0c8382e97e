package verify

import (
	"context"
	"errors"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// Differ compares rows that a pass would write as a verification does.
type Differ struct{}

var _ flush.Differ = Differ{}

// Differing implements flush.Differ.
func (Differ) Differing(ctx context.Context, sink flush.Sink, m *mapping.Mapping, rows []row.Row) ([]flush.Differs, error) {
	table, ok := sink.(Table)
	if !ok {
		return nil, errors.New("this database cannot look rows up by their keys")
	}
	plan := m.Plan()
	r := &comparison{Checker: &Checker{table: table, name: plan.Table.Name, m: m, skipped: make([]bool, len(plan.Columns))}}
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
