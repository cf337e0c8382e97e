package sql

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"baton/internal/flush/row"
)

// group holds rows of a batch that are written in the same way.
type group struct {
	plan *row.Plan // the batch's, or a variant of it without some columns
	rows []row.Row // with the values of plan's columns
	// replace: existing rows are deleted first.
	replace bool
	// needs, if set, is a column that the table requires of a new row, and that these rows have no value for.
	needs *row.Column
	// updateFirst: existing rows are updated first, and only the others are upserted.
	updateFirst bool
	// most, if set, is the largest size of the pieces that the rows are written in.
	most int
	// passed: the database has taken these rows in a piece that was undone because of another row.
	passed bool
}

func (g group) task() Task {
	return Task{Plan: g.plan, Rows: g.rows, Replace: g.replace, UpdateFirst: g.updateFirst}
}

func (g group) of(from, to int) group {
	g.rows = g.rows[from:to]
	return g
}

// and is the group with the rows of another one after its own, in a new slice if it has none.
func (g group) and(other group) group {
	if len(g.rows) == 0 {
		g = other
		g.rows = nil
	}
	g.rows = append(g.rows, other.rows...)
	return g
}

// writeShape is how a row is written: a mark for each value that is absent ("" if none), and
// whether an existing row is deleted first.
type writeShape struct {
	mask    string
	replace bool
}

// The signs of a mask.
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

// groups divides the rows of the batch by the shape in which they are written. Whole rows, with the deletions, come first, the others in
// an order that is the same for every batch; within each the rows stay in the order of their keys. Rows that cannot be written at all are
// dead.
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

// part returns the rows that are written as a whole, or deleted, and the others by their shape.
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

// pick leaves out the absent values.
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

// variant is the plan without the absent columns.
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

// variantKey names a variant of a plan.
type variantKey struct {
	plan *row.Plan
	mask string
}

// needed is a column that a new row requires and that p does not write. A plan compiled from a mapping writes all such columns.
func needed(p *row.Plan) *row.Column {
	for i := range p.Table.Columns {
		if c := &p.Table.Columns[i]; !c.Nullable && !c.Default && !c.Generated && !HasColumn(p, c.Name) {
			return c
		}
	}
	return nil
}

var errNoValues = errors.New("the record has no value for any column")

// unwritable is the reason why no row of the group can be written, regardless of the table's rows. p is the plan that g's plan is a
// variant of.
func (g group) unwritable(p *row.Plan, mask string) error {
	if mask == "" {
		return nil
	}
	for _, k := range p.Key {
		if mask[k] == absent {
			return &WrongValue{p.Columns[k].Column, "it identifies the row, and the record has no value for it"}
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
	return &WrongValue{*g.needs, "a new row needs it, and the record has no value for it"}
}

// patch runs the tasks before, and sets aside rows that the table would refuse as new ones, for updates. It returns those rows. An upsert
// would fail: databases check the row to be inserted even where the key exists.
func (a *application) patch(ctx context.Context, tx Session, before []Task, g group) (aside []refusedRow, err error) {
	if err := tx.Run(ctx, before...); err != nil {
		return nil, err
	}
	for i := range g.rows {
		aside = append(aside, refusedRow{group: g.of(i, i+1), cause: needs(g), since: never})
	}
	return aside, nil
}

// deletesFirst lets a row take over a unique value that a deleted one had. Both
// kinds stay in the order of their keys.
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

// CountDeletes of rows that deletesFirst has ordered.
func CountDeletes(rows []row.Row) int {
	n := 0
	for n < len(rows) && rows[n].Delete {
		n++
	}
	return n
}
