package mapping

import (
	"errors"
	"fmt"
	"strings"

	"baton/internal/flush/row"
)

// Mode decides how a row is written if a row with its key exists.
type Mode string

// The modes. The zero value means ModeUpsert if there is a key, and otherwise ModeInsert.
const (
	ModeUpsert  Mode = "upsert"  // insert the row, or change its columns
	ModeInsert  Mode = "insert"  // insert the row; with a dedupe key, only if the row does not exist
	ModeReplace Mode = "replace" // delete the row and insert it again
	ModeDelete  Mode = "delete"  // delete the row
)

// Spec is the mapping part of a job's configuration.
type Spec struct {
	Table string
	Key   []string // columns that identify a row
	Mode  Mode
	// DedupeKey, for ModeInsert, names the columns of a unique index that identifies records which were delivered twice.
	DedupeKey []string
	// DeleteWhen maps inputs to values. A record whose inputs have all of these values deletes its row.
	DeleteWhen map[string]string
	// Generation is the column that has the number of a scan's pass; "" means none.
	Generation string
	// Columns are the columns to write. nil means that columns match inputs by name.
	Columns map[string]ColumnSpec
}

// ColumnSpec configures one column. Every empty field has a default.
type ColumnSpec struct {
	From   string // the name of the input; default: the column's name
	Op     string // "set" or "add"; default: "add" for the input $value, otherwise "set"
	Type   string // how the text is read, such as "integer" or "float"; default: the catalogue's type
	Format string // the format of a timestamp or date: "unix", "unix_ms", "rfc3339" (default) or a layout of Go's time package
	// Missing decides what happens if a record lacks the field: "error", "null", or "keep", which means that the row keeps its value. If
	// Missing is empty, the column decides. If the source delivers states and the column has a constant default, the default is written.
	// With any other default, the row keeps its value. A column without a default becomes NULL if it is nullable; otherwise a missing field
	// is an error.
	Missing string
	Empty   string // "null" means that an empty text becomes NULL
	Place   int    // in a table that is created: columns are ordered by Place, and then by name
}

// Mapping turns the records of one source into rows of one table. It is
// immutable and safe for concurrent use.
type Mapping struct {
	plan    row.Plan
	columns []column
	adds    bool // at least one column has OpAdd
	mode    Mode
	deletes []condition // the conditions of a deletion; if there are none, no record deletes
}

// condition is a value that an input must have.
type condition struct {
	input int
	text  string
}

// column describes how one column is written: which input has its text, and how the text is converted.
type column struct {
	name        string
	input       int // index into Record.Inputs
	op          row.Op
	key         bool
	named       bool // the input is known even if the record no longer exists
	missingNull bool
	missingKeep bool
	constant    *row.Value // the value for a missing field, which is the column's default; if nil, the two flags decide
	emptyNull   bool
	read        row.Reader
	what        string // the name of the type in messages
}

// Inputs returns the names of the raw inputs that a record of the source must contain, in the order of the record.
func (m *Mapping) Inputs() []string { return m.plan.Inputs }

// Plan returns the plan for writing the rows. Every call returns the same pointer.
func (m *Mapping) Plan() *row.Plan { return &m.plan }

// Mode returns how a row is written if a row with its key exists.
func (m *Mapping) Mode() Mode { return m.mode }

// Adds reports whether a column has OpAdd, so that a record that is written twice counts twice.
func (m *Mapping) Adds() bool { return m.adds }

// Row converts a record. An error means that the record does not fit and becomes a dead letter; the error names the column. Row changes no
// value to make it fit. For a record that is gone, it converts only the key columns.
func (m *Mapping) Row(r row.Record) (row.Row, error) {
	row := row.Row{Values: make([]row.Value, len(m.columns))}
	err := m.fill(&row, &r)
	return row, err
}

// fill converts a record into a row. The row's Values must be allocated, and may have been used for an earlier page.
func (m *Mapping) fill(to *row.Row, r *row.Record) error {
	to.Record, to.Adopted = *r, false
	if r.Err != nil {
		return r.Err
	}
	if len(r.Inputs) != len(m.plan.Inputs) {
		return fmt.Errorf("the source delivered %d inputs instead of %d", len(r.Inputs), len(m.plan.Inputs))
	}
	to.Delete = r.Gone || m.mode == ModeDelete || m.deletes != nil && m.isDelete(r)
	to.Replace = m.mode == ModeReplace && !to.Delete
	if !to.Delete && m.saysNothing(r) {
		return fmt.Errorf("the record has none of the fields %s, so no column gets a value", list(m.plan.Inputs))
	}
	for i := range m.columns {
		c := &m.columns[i]
		if to.Delete && !c.key {
			to.Values[i] = row.Value{}
			continue
		}
		v, err := c.value(r.Inputs[c.input])
		if err != nil {
			return m.misfit(c, err)
		}
		to.Values[i] = v
	}
	return nil
}

// saysNothing reports whether the record has no value for any column.
func (m *Mapping) saysNothing(r *row.Record) bool {
	for i := range m.columns {
		if r.Inputs[m.columns[i].input].OK {
			return false
		}
	}
	return true
}

// isDelete reports whether the record fulfils all conditions of a deletion.
func (m *Mapping) isDelete(r *row.Record) bool {
	for _, c := range m.deletes {
		if raw := r.Inputs[c.input]; !raw.OK || raw.Text != c.text {
			return false
		}
	}
	return true
}

// misfit adds the column to the error about a record that does not fit.
func (m *Mapping) misfit(c *column, err error) error {
	input := m.plan.Inputs[c.input]
	if input == c.name {
		return fmt.Errorf("column %q (%s): %w", c.name, c.what, err)
	}
	return fmt.Errorf("column %q (%s) from %s: %w", c.name, c.what, input, err)
}

var errMissing = errors.New("the source has no such field, and the column must not be NULL")

func (c *column) value(raw row.Raw) (row.Value, error) {
	if raw.OK && (raw.Text != "" || !c.emptyNull) {
		v, err := c.read(raw.Text)
		if err != nil && raw.Text == "" {
			return v, fmt.Errorf("%w; `empty: \"null\"` would make it NULL", err)
		}
		return v, err
	}
	if !raw.OK && c.constant != nil {
		return *c.constant, nil
	}
	if !raw.OK && c.missingKeep {
		return row.Absent(), nil
	}
	if !raw.OK && !c.missingNull {
		return row.Value{}, errMissing
	}
	if c.op == row.OpAdd {
		return c.read("0") // a missing increment must not make the sum NULL
	}
	return row.Value{}, nil
}

// list formats names for a message: "a, b, c".
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
