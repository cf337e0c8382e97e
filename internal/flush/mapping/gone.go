package mapping

import (
	"errors"
	"fmt"

	"baton/internal/flush/row"
)

// OnMissing is the policy for a row whose record is gone from the source.
type OnMissing string

// The values of the setting "on_missing". The zero value means MissingDelete.
const (
	MissingDelete OnMissing = "delete" // delete the row
	MissingIgnore OnMissing = "ignore" // leave the row unchanged
	MissingNull   OnMissing = "null"   // set all columns but the key to NULL
)

// Check refuses an unknown choice, and a choice that the mapping's columns do not allow.
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
			problems = append(problems, fmt.Errorf("table %q: `mode: delete` only deletes rows, but `on_missing: null` updates rows: "+
				"remove one of the two settings", m.plan.Table.Name))
		}
	default:
		return fmt.Errorf("on_missing: %q is unknown: use delete, ignore or null", string(o))
	}
	for i, c := range m.columns {
		switch {
		case c.key && !c.named:
			problem(c, fmt.Sprintf("of `key` is made from %q, so baton cannot find the row after the record has been "+
				"deleted: make it from a captured part of the key, or from %s, or set `on_missing: ignore`",
				m.plan.Inputs[c.input], row.InputMember))
		case o == MissingNull && !c.key && !m.plan.Columns[i].Nullable:
			problem(c, "is NOT NULL, but `on_missing: null` would set it to NULL: allow NULL, or set on_missing to delete or ignore")
		}
	}
	return errors.Join(problems...)
}

// Row converts a record according to this policy. The result ok is false if there is nothing to write.
func (o OnMissing) Row(m *Mapping, r row.Record) (out row.Row, ok bool, err error) {
	out.Values = make([]row.Value, len(m.columns))
	ok, err = o.fill(m, &out, &r)
	return out, ok, err
}

// fill works like Row, for a row whose Values are already allocated.
func (o OnMissing) fill(m *Mapping, row *row.Row, r *row.Record) (ok bool, err error) {
	if r.Gone && r.Err == nil && o == MissingIgnore {
		return false, nil
	}
	if err := m.fill(row, r); err != nil {
		return false, err
	}
	if r.Gone && m.adds {
		return false, errors.New("the source reports the record as deleted, but a sum cannot be deleted exactly")
	}
	if o == MissingNull && r.Gone {
		row.Delete = false // all columns but the key are NULL already
	}
	return true, nil
}
