package flushtest

import (
	"context"
	"slices"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// CountStale implements flush.StaleFinder. It counts all rows that a pass has written, and the rows among them that another pass than the
// current one has written.
func (d *Database) CountStale(_ context.Context, p *row.Plan, current int64) (stale, all int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	generation := p.Columns[len(p.Columns)-1].Name
	for _, r := range d.rows[p.Table.Name] {
		if n := r[generation].Int(); n > 0 {
			all++
			if n != current {
				stale++
			}
		}
	}
	return stale, all, nil
}

// KeyRows implements flush.KeyLister. It returns the keys of the rows in the given range.
func (d *Database) KeyRows(_ context.Context, p *row.Plan, which flush.KeyRange) ([][]string, error) {
	found := d.behind(p, len(p.Key), which.Behind, func(values []row.Value) bool {
		begins := func(lead []row.Value) bool { return slices.CompareFunc(values[:len(lead)], lead, row.Compare) == 0 }
		return which.Of == nil || slices.ContainsFunc(which.Of, begins)
	})
	if len(which.Of) > 1 {
		slices.Reverse(found)
	}
	var texts [][]string
	for _, values := range found[:min(which.Limit, len(found))] {
		texts = append(texts, keyTexts(values, len(p.Key)))
	}
	return texts, nil
}

// StaleRows implements flush.StaleFinder. It returns rows that another pass than the current one has written.
func (d *Database) StaleRows(
	_ context.Context, p *row.Plan, current int64, behind []row.Value, limit int,
) ([][]string, error) {
	last := len(p.Columns) - 1
	found := d.behind(p, last, behind, func(values []row.Value) bool {
		n := values[last].Int()
		return n > 0 && n != current
	})
	var texts [][]string
	for _, values := range found[:min(limit, len(found))] {
		texts = append(texts, textsOf(values))
	}
	return texts, nil
}

// behind returns the wanted rows after a key, or all wanted rows if the key is nil. It returns the values of the plan's columns. The
// argument keys is the number of columns in the key, which come first. The rows are sorted by these columns.
func (d *Database) behind(p *row.Plan, keys int, key []row.Value, wanted func([]row.Value) bool) (found [][]row.Value) {
	d.mu.Lock()
	defer d.mu.Unlock()
	byKey := func(a, b []row.Value) int { return slices.CompareFunc(a[:keys], b[:keys], row.Compare) }
	for _, r := range d.rows[p.Table.Name] {
		var values []row.Value
		for _, c := range p.Columns {
			values = append(values, r[c.Name])
		}
		if wanted(values) && (key == nil || byKey(values, key) > 0) {
			found = append(found, values)
		}
	}
	slices.SortFunc(found, byKey)
	return found
}

// keyTexts returns the texts of a row's key, which are the first values; keys is their number. If there are further values, it appends
// row.Listed if one of them is not NULL, and otherwise "".
func keyTexts(values []row.Value, keys int) []string {
	texts := textsOf(values[:keys])
	if others := values[keys:]; len(others) > 0 {
		live := ""
		if slices.ContainsFunc(others, func(v row.Value) bool { return v.Kind() != row.KindNull }) {
			live = row.Listed
		}
		texts = append(texts, live)
	}
	return texts
}

func textsOf(values []row.Value) (texts []string) {
	for _, v := range values {
		texts = append(texts, textOf(v))
	}
	return texts
}
