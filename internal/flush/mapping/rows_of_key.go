package mapping

import (
	"fmt"
	"slices"

	"baton/internal/flush/row"
)

// List returns the plan for listing the rows of the table. Its columns are the columns of the key, in the order of the index, and the
// columns that Empties has added.
func (v *Vanished) List() *row.Plan { return &v.list }

// Empties sets a mode for a job that does not delete vanished rows, but sets all of their columns except the key to NULL. In this mode a
// row in which only the key is not NULL counts as vanished. Empties refuses a mapping that has only key columns.
func (v *Vanished) Empties(m *Mapping) error {
	for i, c := range m.columns {
		if !c.key {
			v.list.Columns = append(v.list.Columns, row.PlanColumn{Column: m.plan.Columns[i].Column})
		}
	}
	if len(v.list.Columns) == v.keys {
		return fmt.Errorf("table %q: `on_missing: null` can set no column to NULL, because all are in `key`: use delete or ignore",
			m.plan.Table.Name)
	}
	return nil
}

// Live reports whether a listed row has a value outside of its key. Without Empties every row counts as live.
func (v *Vanished) Live(texts []string) bool {
	return len(texts) == v.keys || texts[v.keys] == row.Listed
}

// HasMembers reports whether a key of the source has a row for each of its members.
func (v *Vanished) HasMembers() bool { return v.lead < v.keys }

// FindsRows refuses a table without an index that finds the rows of one key of the source, because baton would have to read all rows of the
// table.
func (v *Vanished) FindsRows() error {
	var first, last []string
	for i, c := range v.plan.Columns[:v.keys] {
		if v.plan.Inputs[v.inputs[i]] == row.InputMember {
			last = append(last, c.Name)
		} else {
			first = append(first, c.Name)
		}
	}
	if v.lead == len(first) {
		return nil
	}
	return fmt.Errorf("table %q: for every changed key baton searches its rows. No unique index of %s begins with %s, so each "+
		"search would "+
		"read all rows: add a unique index on (%s)", v.plan.Table.Name, v.KeyText(), list(first), list(slices.Concat(first, last)))
}

// Lead returns the values of the first key columns, which are the same in all rows of a source key. It returns false if there can be no
// such rows.
func (v *Vanished) Lead(r *row.Record) ([]row.Value, bool) {
	values := make([]row.Value, v.lead)
	for i := range values {
		var err error
		if values[i], err = v.reads[i](r.Inputs[v.inputs[i]].Text); err != nil {
			return nil, false
		}
	}
	return values, true
}

// lead returns how many columns of an index come before the first column that is made of a member.
func (m *Mapping) lead(index []string) int {
	at := slices.IndexFunc(index, func(name string) bool {
		i := slices.IndexFunc(m.columns, func(c column) bool { return c.name == name })
		return i >= 0 && m.plan.Inputs[m.columns[i].input] == row.InputMember
	})
	if at < 0 {
		return len(index)
	}
	return at
}
