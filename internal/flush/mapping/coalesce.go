package mapping

import (
	"cmp"
	"slices"

	"baton/internal/flush/row"
)

// Rows converts records, makes the rows unique by key and sorts them by key. Unique,
// because one statement must not touch a row twice; sorted, because key order suits
// indexes and prevents deadlocks.
func (m *Mapping) Rows(records []row.Record, gone OnMissing) (rows []row.Row, dead []row.DeadLetter) {
	width := len(m.columns)
	values := make([]row.Value, len(records)*width) // one allocation a page
	rows = make([]row.Row, 0, len(records))
	for i, r := range records {
		row := row.Row{Values: values[i*width : (i+1)*width : (i+1)*width]}
		switch ok, err := gone.fill(m, &row, r); {
		case err != nil:
			dead = append(dead, m.dead(r, err))
		case ok:
			rows = append(rows, row)
		}
	}
	if len(m.plan.Key) > 0 {
		var refused []row.DeadLetter
		rows, refused = m.coalesce(rows)
		dead = append(dead, refused...)
	}
	return rows, dead
}

func (m *Mapping) dead(r row.Record, err error) row.DeadLetter {
	return row.DeadLetter{Record: row.RecordJSON(m.plan.Inputs, r), Error: err.Error()}
}

// place is a row's sort key: the first 64 bits of its key, and where it is.
type place struct {
	prefix uint64
	index  int32
}

// coalesce sorts rows by key and merges those of one key in the order in which
// they came. Records that cannot be merged are dead letters.
func (m *Mapping) coalesce(rows []row.Row) ([]row.Row, []row.DeadLetter) {
	first := m.plan.Key[0]
	kind := m.plan.Columns[first].Kind
	places := make([]place, len(rows))
	for i := range rows {
		places[i] = place{prefix: rows[i].Values[first].Prefix(kind), index: int32(i)}
	}
	order := func(a, b place) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return m.plan.CompareKeys(&rows[a.index], &rows[b.index])
	}
	if strictlySorted(places, order) {
		return rows, nil
	}
	slices.SortFunc(places, func(a, b place) int {
		if c := order(a, b); c != 0 {
			return c
		}
		return cmp.Compare(a.index, b.index)
	})
	var dead []row.DeadLetter
	out := make([]row.Row, 0, len(rows))
	var last place
	for i, p := range places {
		row := rows[p.index]
		if i == 0 || order(last, p) != 0 {
			out = append(out, row)
			last = p
			continue
		}
		merged, err := m.merge(out[len(out)-1], row)
		if err != nil {
			dead = append(dead, m.dead(row.Record, err))
			continue
		}
		out[len(out)-1] = merged
	}
	return out, dead
}

func strictlySorted(places []place, order func(a, b place) int) bool {
	for i := 1; i < len(places); i++ {
		if order(places[i-1], places[i]) >= 0 {
			return false
		}
	}
	return true
}

// merge puts a later row of the same key on top of an earlier one.
func (m *Mapping) merge(earlier, later row.Row) (row.Row, error) {
	switch {
	case m.plan.Keep:
		return earlier, nil
	case later.Delete || later.Replace:
		return later, nil
	case earlier.Delete: // the row starts empty
		later.Replace = true
		return later, nil
	}
	out := later
	out.Replace = earlier.Replace
	out.Values = slices.Clone(later.Values)
	// If the database refuses the row, its dead letter must have all merged records.
	out.Record.Inputs = slices.Clone(later.Record.Inputs)
	for i := range m.columns {
		c := &m.columns[i]
		switch {
		case out.Values[i].IsAbsent():
			out.Values[i] = earlier.Values[i]
			out.Record.Inputs[c.input] = earlier.Record.Inputs[c.input]
		case c.op == row.OpAdd:
			sum, err := row.Add(earlier.Values[i], later.Values[i])
			if err != nil {
				return row.Row{}, m.misfit(c, err)
			}
			out.Values[i] = sum
			out.Record.Inputs[c.input] = row.Raw{Text: sum.NumberText(), OK: true}
		}
	}
	return out, nil
}
