package mapping

import (
	"errors"
	"fmt"

	"baton/internal/flush/row"
)

// OnMissing is the policy for a row whose record is gone from the source.
type OnMissing string

// The choices of on_missing. The zero value means MissingDelete.
const (
	MissingDelete OnMissing = "delete" // delete the row
	MissingIgnore OnMissing = "ignore" // leave the row as it is
	MissingNull   OnMissing = "null"   // set all but its key to NULL
)

// Check refuses a choice that is unknown or that the mapping's columns rule out.
func (o OnMissing) Check(m *Mapping) error {
	var problems []error
	problem := func(c column, text string) {
		problems = append(problems, fmt.Errorf("table %q: column %q %s", m.plan.Table.Name, c.name, text))
	}
	switch o {
	case MissingIgnore:
		return nil
	case MissingDelete, MissingNull:
		if o == MissingNull && m.mode == ModeDelete {
			problems = append(problems, fmt.Errorf("table %q: `mode: delete` deletes rows, and `on_missing: null` would write them: "+
				"take one of "+
				"them out", m.plan.Table.Name))
		}
	default:
		return fmt.Errorf("on_missing: %q is unknown: it is delete, ignore or null", string(o))
	}
	for i, c := range m.columns {
		switch {
		case c.key && !c.named:
			problem(c, fmt.Sprintf("of `key` is made from %q, of which nothing is left to find the row by when the record is "+
				"gone: make it from a captured part of the key, or from %s, or set `on_missing: ignore`",
				m.plan.Inputs[c.input], row.InputMember))
		case o == MissingNull && !c.key && !m.plan.Columns[i].Nullable:
			problem(c, "is NOT NULL, which `on_missing: null` would have to break: let it be NULL, or choose delete or ignore")
		}
	}
	return errors.Join(problems...)
}

// Row converts a record under this policy; ok is false if nothing is to be written.
func (o OnMissing) Row(m *Mapping, r row.Record) (out row.Row, ok bool, err error) {
	out.Values = make([]row.Value, len(m.columns))
	ok, err = o.fill(m, &out, &r)
	return out, ok, err
}

// fill is Row into a row with allocated Values.
func (o OnMissing) fill(m *Mapping, row *row.Row, r *row.Record) (ok bool, err error) {
	if r.Gone && r.Err == nil && o == MissingIgnore {
		return false, nil
	}
	if err := m.fill(row, r); err != nil {
		return false, err
	}
	if r.Gone && m.adds {
		return false, errors.New("the source says that it is gone, but a sum cannot be deleted exactly")
	}
	if o == MissingNull && r.Gone {
		row.Delete = false // all but its key is NULL already
	}
	return true, nil
}
