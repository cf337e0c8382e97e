package flush

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Names of the inputs that sources deliver beside fields and captures.
const (
	InputField      = "$field"      // counters: the hash field that was counted
	InputValue      = "$value"      // counters: what was added since the last flush; list and scan: the whole value
	InputID         = "$id"         // stream: the entry's id
	InputKey        = "$key"        // scan: the key
	InputMember     = "$member"     // scan: the member of a set
	InputScore      = "$score"      // scan: and its score
	InputGeneration = "$generation" // scan: the number of the pass
)

// Inputs says what a source can deliver to a mapping.
type Inputs struct {
	// Names are the inputs that the source itself knows: $field and $value of
	// counters, and captures such as id of "user:<id>".
	Names []string
	// Fields: every other name is a field of the row's hash.
	Fields bool
	// Ledger: the source's pages are numbered parts, so the ledger makes adding
	// exact; or they have moves, which do the same. Without it a page may be written
	// twice, and nothing may be added, nor inserted without a key.
	Ledger bool
	// Position: the source keeps its place in the database, not in Redis.
	Position bool
	// Repeats: every pass delivers every record again. One that does not fit is put
	// aside once, not with each pass.
	Repeats bool
	// Watermark: $value is a total that only the producers write. What is written is
	// the difference to the total that the database has a mark of.
	Watermark bool
}

// Mode says how rows meet those that are there already.
type Mode string

// The modes. The zero value means ModeUpsert where there is a key, else ModeInsert.
const (
	ModeUpsert  Mode = "upsert"  // insert the row, or change its columns
	ModeInsert  Mode = "insert"  // insert it; with a dedupe key, unless it is there already
	ModeReplace Mode = "replace" // delete the row and insert it anew
	ModeDelete  Mode = "delete"  // delete the row
)

// MappingSpec is the part of a job's configuration that says what goes where.
type MappingSpec struct {
	Table string
	Key   []string // columns that identify a row
	Mode  Mode
	// DedupeKey, for ModeInsert: the columns of a unique index by which a record that
	// was delivered twice is told.
	DedupeKey []string
	// DeleteWhen: a record with all of these inputs deletes its row.
	DeleteWhen map[string]string
	// Generation is the column that a scan's passes are counted in; "" for none.
	Generation string
	// Columns says what each written column is made of. nil: columns match
	// inputs by name.
	Columns map[string]ColumnSpec
}

// ColumnSpec says what one column is made of. Every empty field has a default.
type ColumnSpec struct {
	From    string // input; default: the column's own name
	Op      string // set or add; default: add for $value, else set
	Type    string // how the text is read: integer, float, ... Default: as the catalogue says
	Format  string // of a timestamp or date: unix, unix_ms, rfc3339 (default) or a layout of Go's time package
	Missing string // error, null or keep; default: keep for a column with a default, null for a nullable one, else error
	Empty   string // "null": an empty text is NULL
}

// Mapping turns the records of one source into rows of one table. It is
// immutable and safe for concurrent use.
type Mapping struct {
	plan    Plan
	columns []column
	adds    bool // some column has OpAdd
	mode    Mode
	deletes []condition // what makes a record delete its row; none: nothing does
	// vanished: rows that a scan no longer finds are deleted; nil: they are not.
	vanished *vanished
}

// condition is what an input must be.
type condition struct {
	input int
	text  string
}

// column is one written column: where its text comes from and how it is read.
type column struct {
	name        string
	input       int // index into Record.Inputs
	op          Op
	key         bool
	named       bool // its input is known even when the row's hash is gone
	missingNull bool
	missingKeep bool
	emptyNull   bool
	read        reader
	what        string // the type as messages name it
}

// Inputs names the raw inputs that the source must deliver, in order.
func (m *Mapping) Inputs() []string { return m.plan.Inputs }

// Plan is the write side of the mapping; always the same pointer.
func (m *Mapping) Plan() *Plan { return &m.plan }

// Row converts a record. An error means that the record does not fit and is a
// dead letter; it names the column, and nothing has been changed to make it fit.
// Of a record that is gone only the key columns are converted.
func (m *Mapping) Row(r Record) (Row, error) {
	row := Row{Values: make([]Value, len(m.columns))}
	err := m.fill(&row, r)
	return row, err
}

// fill converts r into row, whose Values have their length already.
func (m *Mapping) fill(row *Row, r Record) error {
	row.Record = r
	if r.Err != nil {
		return r.Err
	}
	if len(r.Inputs) != len(m.plan.Inputs) {
		return fmt.Errorf("the source delivered %d inputs instead of %d", len(r.Inputs), len(m.plan.Inputs))
	}
	row.Delete = r.Gone || m.mode == ModeDelete || m.deletes != nil && m.isDelete(r)
	row.Replace = m.mode == ModeReplace && !row.Delete
	if !row.Delete && m.saysNothing(r) {
		return fmt.Errorf("the record has none of %s, so it gives no column a value", list(m.plan.Inputs))
	}
	for i := range m.columns {
		c := &m.columns[i]
		if row.Delete && !c.key {
			continue
		}
		v, err := c.value(r.Inputs[c.input])
		if err != nil {
			return m.misfit(c, err)
		}
		row.Values[i] = v
	}
	return nil
}

// saysNothing reports whether the record has a value for no column: a row of it were NULLs.
func (m *Mapping) saysNothing(r Record) bool {
	return !slices.ContainsFunc(m.columns, func(c column) bool { return r.Inputs[c.input].OK })
}

// isDelete reports whether the record has all that makes it a deletion.
func (m *Mapping) isDelete(r Record) bool {
	for _, c := range m.deletes {
		if raw := r.Inputs[c.input]; !raw.OK || raw.Text != c.text {
			return false
		}
	}
	return true
}

// misfit says which column a record does not fit.
func (m *Mapping) misfit(c *column, err error) error {
	input := m.plan.Inputs[c.input]
	if input == c.name {
		return fmt.Errorf("column %q (%s): %w", c.name, c.what, err)
	}
	return fmt.Errorf("column %q (%s) from %s: %w", c.name, c.what, input, err)
}

func (c *column) value(raw Raw) (Value, error) {
	if raw.OK && (raw.Text != "" || !c.emptyNull) {
		v, err := c.read(raw.Text)
		if err != nil && raw.Text == "" {
			return v, fmt.Errorf("%w; `empty: \"null\"` would make it NULL", err)
		}
		return v, err
	}
	if !raw.OK && c.missingKeep {
		return Absent(), nil
	}
	if !raw.OK && !c.missingNull {
		return Value{}, errMissing
	}
	if c.op == OpAdd {
		return c.read("0") // adding nothing must not make the sum NULL
	}
	return Value{}, nil
}

// quote makes a value fit for a message, whatever bytes it has.
func quote(s string) string {
	const most = 64
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:cut], len(s))
}

// list names things in a message: "a, b, c".
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
