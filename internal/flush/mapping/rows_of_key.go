package mapping

import (
	"fmt"
	"slices"

	"baton/internal/flush/row"
)

// List is the plan for listing the rows of the table. Its columns are the key's, in the order of their index, and
// those that Empties has added.
func (v *Vanished) List() *row.Plan { return &v.list }

// Empties makes rows vanish by NULL in all columns but their key: a row without other values counts as vanished. It
// refuses a mapping without such columns.
func (v *Vanished) Empties(m *Mapping) error {
	for i, c := range m.columns {
		if !c.key {
			v.list.Columns = append(v.list.Columns, row.PlanColumn{Column: m.plan.Columns[i].Column})
		}
	}
	if len(v.list.Columns) == v.keys {
		return fmt.Errorf("table %q: `on_missing: null` has no column but those of `key`, which stay: choose delete or ignore",
			m.plan.Table.Name)
	}
	return nil
}

// Live reports whether a listed row has more than its key. Without Empties every row has.
func (v *Vanished) Live(texts []string) bool {
	return len(texts) == v.keys || texts[v.keys] == row.Listed
}

// HasMembers reports whether a key of the source has a row for each of its members.
func (v *Vanished) HasMembers() bool { return v.lead < v.keys }

// FindsRows refuses a table that lacks an index for the rows of one key of the source: all rows would have to be read.
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
	return fmt.Errorf("table %q: every change of a key searches for its rows, and no unique index of %s begins with %s, so each time all "+
		"rows would be read: add a unique index on (%s)", v.plan.Table.Name, v.KeyText(), list(first), list(slices.Concat(first, last)))
}

// Lead is the beginning of the key of all rows that are made of a key of the source; false if it can have none.
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

// lead is how many columns of an index come before the first one that is made of a member.
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
