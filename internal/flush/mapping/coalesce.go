package mapping

import (
	"cmp"
	"slices"

	"baton/internal/flush/row"
)

// Space is the memory for the rows of a page. Another page may use it once nothing refers to these rows any longer.
type Space struct {
	values       []row.Value
	rows, sorted []row.Row
	places, more []row.Ranked
}

// Rows converts records, makes the rows unique by key and sorts them by key. Rows must be unique, because one statement must not touch a
// row twice. They are sorted by key, because this order needs fewer reads of an index and prevents deadlocks. The returned rows use the
// memory of s.
func (m *Mapping) Rows(records []row.Record, gone OnMissing, s *Space) (rows []row.Row, dead []row.DeadLetter) {
	width := len(m.columns)
	s.values = slices.Grow(s.values[:0], len(records)*width)
	values := s.values[:len(records)*width]
	rows = slices.Grow(s.rows[:0], len(records))
	for i := range records {
		rows = append(rows, row.Row{Values: values[i*width : (i+1)*width : (i+1)*width]})
		switch ok, err := gone.fill(m, &rows[len(rows)-1], &records[i]); {
		case err != nil:
			dead = append(dead, m.dead(records[i], err))
			fallthrough
		case !ok:
			rows = rows[:len(rows)-1]
		}
	}
	s.rows = rows
	if len(m.plan.Key) > 0 {
		var refused []row.DeadLetter
		rows, refused = m.coalesce(s, rows)
		dead = append(dead, refused...)
	}
	return rows, dead
}

func (m *Mapping) dead(r row.Record, err error) row.DeadLetter {
	return row.DeadLetter{Record: row.RecordJSON(m.plan.Inputs, r), Error: err.Error()}
}

// coalesce sorts rows by key, and merges rows with the same key in the order of their arrival. Records that cannot be merged become dead
// letters.
func (m *Mapping) coalesce(s *Space, rows []row.Row) ([]row.Row, []row.DeadLetter) {
	first := m.plan.Key[0]
	kind := m.plan.Columns[first].Kind
	places := slices.Grow(s.places[:0], len(rows))[:len(rows)]
	for i := range rows {
		places[i] = row.Ranked{Rank: rows[i].Values[first].Prefix(kind), At: uint32(i)}
	}
	s.places = places
	order := func(a, b row.Ranked) int {
		if a.Rank != b.Rank {
			return cmp.Compare(a.Rank, b.Rank)
		}
		return m.plan.CompareKeys(&rows[a.At], &rows[b.At])
	}
	if strictlySorted(places, order) {
		return rows, nil
	}
	s.places, s.more = row.SortRanked(places, s.more)
	places = s.places
	for rest := places; len(rest) > 0; {
		n := row.SameRank(rest)
		if n > 1 {
			slices.SortStableFunc(rest[:n], order)
		}
		rest = rest[n:]
	}
	var dead []row.DeadLetter
	out := slices.Grow(s.sorted[:0], len(rows))
	var last row.Ranked
	for i, p := range places {
		if i == 0 || order(last, p) != 0 {
			out = append(out, rows[p.At])
			last = p
			continue
		}
		merged, err := m.merge(out[len(out)-1], rows[p.At])
		if err != nil {
			dead = append(dead, m.dead(rows[p.At].Record, err))
			continue
		}
		out[len(out)-1] = merged
	}
	s.sorted = out
	return out, dead
}

func strictlySorted(places []row.Ranked, order func(a, b row.Ranked) int) bool {
	for i := 1; i < len(places); i++ {
		if order(places[i-1], places[i]) >= 0 {
			return false
		}
	}
	return true
}

// merge applies a later row to an earlier row with the same key.
func (m *Mapping) merge(earlier, later row.Row) (row.Row, error) {
	switch {
	case m.plan.Keep:
		return earlier, nil
	case later.Delete || later.Replace:
		return later, nil
	case earlier.Delete: // a later record writes the deleted row anew
		later.Replace = true
		return later, nil
	}
	out := later
	out.Replace = earlier.Replace
	out.Values = slices.Clone(later.Values)
	// If the database refuses the row, its dead letter must contain the inputs of all merged records.
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
