package sql

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"baton/internal/flush/row"
)

// group contains rows of a batch that are written in the same way.
type group struct {
	plan *row.Plan // the batch's plan, or a variant of the plan without some columns
	rows []row.Row // rows with values for the columns of plan
	// replace means that existing rows are deleted first.
	replace bool
	// needs, if set, is a column that the table requires for a new row, and for which these rows have no value.
	needs *row.Column
	// updateFirst means that existing rows are updated first, and only the other rows are upserted.
	updateFirst bool
	// most, if set, limits the number of rows in a piece.
	most int
	// passed means that the database has accepted these rows in a piece that was undone because of another row.
	passed bool
}

func (g group) task() Task {
	return Task{Plan: g.plan, Rows: g.rows, Replace: g.replace, UpdateFirst: g.updateFirst}
}

func (g group) of(from, to int) group {
	g.rows = g.rows[from:to]
	return g
}

// and returns the group g with its rows, followed by the rows of the other group. If g has no rows, the result has a new slice.
func (g group) and(other group) group {
	if len(g.rows) == 0 {
		g = other
		g.rows = nil
	}
	g.rows = append(g.rows, other.rows...)
	return g
}

// writeShape describes how a row is written.
type writeShape struct {
	mask    string // one sign for each value: present or absent; "" if no value is absent
	replace bool   // an existing row is deleted first
}

// present and absent are the characters of a mask, which has one character for each column.
const present, absent = '+', '-'

func (m writeShape) compare(other writeShape) int {
	if m.replace != other.replace {
		if other.replace {
			return -1
		}
		return 1
	}
	return strings.Compare(m.mask, other.mask)
}

// groups divides the rows of the batch by their shape for writing. The first group contains complete rows and deletions. The order of the
// other groups is the same for every batch. Within a group the rows stay in the order of their keys. A row that cannot be written in any
// way becomes a dead letter.
func (a *application) groups(rows []row.Row) []group {
	var out []group
	plain, parts := part(rows)
	if len(plain) > 0 {
		out = append(out, group{plan: a.plan, rows: deletesFirst(plain)})
	}
	for _, m := range slices.SortedFunc(maps.Keys(parts), writeShape.compare) {
		g := group{plan: a.plan, rows: parts[m], replace: m.replace}
		if m.mask != "" {
			g.plan = a.store.variant(a.plan, m.mask)
			g.needs = needed(g.plan)
		}
		if cause := g.unwritable(a.plan, m.mask); cause != nil {
			for _, r := range g.rows {
				a.dead = append(a.dead, a.letter(a.plan, r, cause))
			}
			continue
		}
		if m.mask != "" {
			g.rows = pick(g.rows, m.mask)
		}
		out = append(out, g)
	}
	return out
}

// part returns the complete rows and the deletions as plain, and the other rows by their shape.
func part(rows []row.Row) (plain []row.Row, parts map[writeShape][]row.Row) {
	for i := range rows {
		r := &rows[i]
		m := mannerOf(r)
		if m == (writeShape{}) {
			if parts != nil {
				plain = append(plain, *r)
			}
			continue
		}
		if parts == nil {
			parts = map[writeShape][]row.Row{}
			plain = append(plain, rows[:i]...)
		}
		parts[m] = append(parts[m], *r)
	}
	if parts == nil {
		plain = rows
	}
	return plain, parts
}

func mannerOf(r *row.Row) writeShape {
	if r.Delete {
		return writeShape{}
	}
	m := writeShape{replace: r.Replace}
	whole := true
	for i := range r.Values {
		whole = whole && !r.Values[i].IsAbsent()
	}
	if whole {
		return m
	}
	mask := make([]byte, len(r.Values))
	for i := range r.Values {
		mask[i] = present
		if r.Values[i].IsAbsent() {
			mask[i] = absent
		}
	}
	m.mask = string(mask)
	return m
}

// pick returns the rows without the values that are absent according to the mask.
func pick(rows []row.Row, mask string) []row.Row {
	out := slices.Clone(rows) // the batch may be applied again
	values := make([]row.Value, 0, len(rows)*len(mask))
	for i := range out {
		start := len(values)
		for j, v := range out[i].Values {
			if mask[j] == present {
				values = append(values, v)
			}
		}
		out[i].Values = values[start:len(values):len(values)]
	}
	return out
}

// variant returns the plan without the columns that are absent according to the mask.
func (s *Store) variant(p *row.Plan, mask string) *row.Plan {
	return s.variants.Get(variantKey{p, mask}, func(variantKey) *row.Plan {
		out := *p
		out.Columns, out.Key = nil, nil
		places := make([]int, len(p.Columns))
		for i, c := range p.Columns {
			places[i] = len(out.Columns)
			if mask[i] == present {
				out.Columns = append(out.Columns, c)
			}
		}
		for _, k := range p.Key {
			out.Key = append(out.Key, places[k])
		}
		return &out
	})
}

// variantKey identifies a variant of a plan.
type variantKey struct {
	plan *row.Plan
	mask string
}

// needed returns a column that a new row requires and that p does not write, or nil. A plan that was compiled from a mapping writes all
// such columns.
func needed(p *row.Plan) *row.Column {
	for i := range p.Table.Columns {
		if c := &p.Table.Columns[i]; !c.Nullable && !c.Default && !c.Generated && !HasColumn(p, c.Name) {
			return c
		}
	}
	return nil
}

var errNoValues = errors.New("the record has no value for any column")

// unwritable returns the reason why no row of the group can be written, whatever rows the table contains. g's plan is a variant of p.
func (g group) unwritable(p *row.Plan, mask string) error {
	if mask == "" {
		return nil
	}
	for _, k := range p.Key {
		if mask[k] == absent {
			return &WrongValue{p.Columns[k].Column, "the column identifies the row, but the record has no value for it"}
		}
	}
	switch {
	case g.needs != nil && !g.updates():
		return needs(g)
	case len(g.plan.Columns) == 0:
		return errNoValues
	}
	return nil
}

func needs(g group) error {
	return &WrongValue{*g.needs, "a new row needs a value in this column, but the record has none"}
}

// patch runs the tasks in the argument before. It sets aside the rows that the table would refuse as new rows, and returns these rows, so
// that they are tried as updates. An upsert would fail, because databases check the row to be inserted even if its key exists.
func (a *application) patch(ctx context.Context, tx Session, before []Task, g group) (aside []refusedRow, err error) {
	if err := tx.Run(ctx, before...); err != nil {
		return nil, err
	}
	for i := range g.rows {
		aside = append(aside, refusedRow{group: g.of(i, i+1), cause: needs(g), since: never})
	}
	return aside, nil
}

// deletesFirst sorts deletions before the other rows, so that another row may use a unique value of a deleted row. The deletions stay in
// the order of their keys, and so do the other rows.
func deletesFirst(rows []row.Row) []row.Row {
	deletes := 0
	sorted := true
	for i := range rows {
		if rows[i].Delete {
			sorted = sorted && deletes == i
			deletes++
		}
	}
	if sorted {
		return rows
	}
	out := make([]row.Row, 0, len(rows))
	for _, deleted := range []bool{true, false} {
		for i := range rows {
			if rows[i].Delete == deleted {
				out = append(out, rows[i])
			}
		}
	}
	return out
}

// CountDeletes returns the number of deletions in rows that deletesFirst has ordered.
func CountDeletes(rows []row.Row) int {
	n := 0
	for n < len(rows) && rows[n].Delete {
		n++
	}
	return n
}
