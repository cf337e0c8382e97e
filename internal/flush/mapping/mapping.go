package mapping

import (
	"errors"
	"fmt"
	"strings"

	"baton/internal/flush/row"
)

// Mode is how a row is written beside existing ones.
type Mode string

// The modes. The zero value means ModeUpsert where there is a key, else ModeInsert.
const (
	ModeUpsert  Mode = "upsert"  // insert the row, or change its columns
	ModeInsert  Mode = "insert"  // insert it; with a dedupe key, unless it exists
	ModeReplace Mode = "replace" // delete the row and insert it again
	ModeDelete  Mode = "delete"  // delete the row
)

// Spec is the mapping part of a job's configuration.
type Spec struct {
	Table string
	Key   []string // columns that identify a row
	Mode  Mode
	// DedupeKey, for ModeInsert: the columns of a unique index that identifies records which
	// were delivered twice.
	DedupeKey []string
	// DeleteWhen: a record with all of these inputs deletes its row.
	DeleteWhen map[string]string
	// Generation is the column that a scan's passes are counted in; "" for none.
	Generation string
	// Columns are the written columns. nil: columns match inputs by name.
	Columns map[string]ColumnSpec
}

// ColumnSpec configures one column. Every empty field has a default.
type ColumnSpec struct {
	From   string // input; default: the column's own name
	Op     string // set or add; default: add for $value, else set
	Type   string // how the text is read: integer, float, ... Default: the catalogue's type
	Format string // of a timestamp or date: unix, unix_ms, rfc3339 (default) or a layout of Go's time package
	// Missing is error, null or keep. Default for a column with a default: that default in a source of states, if it
	// is constant, else keep; for another column null if it may be NULL, else error.
	Missing string
	Empty   string // "null": an empty text is NULL
	Place   int    // in a table that is created: columns go by their places, then by their names
}

// Mapping turns the records of one source into rows of one table. It is
// immutable and safe for concurrent use.
type Mapping struct {
	plan    row.Plan
	columns []column
	adds    bool // some column has OpAdd
	mode    Mode
	deletes []condition // the conditions of a deletion; none: no record deletes
}

// condition is a required value of an input.
type condition struct {
	input int
	text  string
}

// column is one written column: where its text comes from and how it is read.
type column struct {
	name        string
	input       int // index into Record.Inputs
	op          row.Op
	key         bool
	named       bool // its input is known even when the record is gone
	missingNull bool
	missingKeep bool
	constant    *row.Value // stands for a missing field: the column's default; nil: see the other two
	emptyNull   bool
	read        row.Reader
	what        string // the type as messages name it
}

// Inputs names the raw inputs that the source must deliver, in order.
func (m *Mapping) Inputs() []string { return m.plan.Inputs }

// Plan is the write side of the mapping; always the same pointer.
func (m *Mapping) Plan() *row.Plan { return &m.plan }

// Mode is how rows are written beside existing ones.
func (m *Mapping) Mode() Mode { return m.mode }

// Adds reports whether a column has OpAdd, so that writing a record twice counts twice.
func (m *Mapping) Adds() bool { return m.adds }

// Row converts a record. An error means that the record does not fit and is a dead letter; it
// names the column. No value is changed to fit. For a record that is gone only the key columns
// are converted.
func (m *Mapping) Row(r row.Record) (row.Row, error) {
	row := row.Row{Values: make([]row.Value, len(m.columns))}
	err := m.fill(&row, &r)
	return row, err
}

// fill converts r into to, whose Values are allocated, and may be those of a page before.
func (m *Mapping) fill(to *row.Row, r *row.Record) error {
	to.Record = *r
	if r.Err != nil {
		return r.Err
	}
	if len(r.Inputs) != len(m.plan.Inputs) {
		return fmt.Errorf("the source delivered %d inputs instead of %d", len(r.Inputs), len(m.plan.Inputs))
	}
	to.Delete = r.Gone || m.mode == ModeDelete || m.deletes != nil && m.isDelete(r)
	to.Replace = m.mode == ModeReplace && !to.Delete
	if !to.Delete && m.saysNothing(r) {
		return fmt.Errorf("the record has no field of %s, so it gives no column a value", list(m.plan.Inputs))
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

// misfit adds the column to the error of a record that does not fit.
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

// list names things in a message: "a, b, c".
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
