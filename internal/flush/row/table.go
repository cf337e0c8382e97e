package row

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Table is the catalogue of a table.
type Table struct {
	Name    string
	Columns []Column
	// Unique lists the columns of every unique index, the primary key first.
	Unique [][]string
	// UpsertOnly: existing rows must be changed by upserts only, because triggers would see a
	// difference, or because a comparison of keys finds other rows than the unique index.
	UpsertOnly bool
	// Identity differs once the table was made again, truncated or restored, as far as the database can tell. "": it
	// cannot. It may differ after a change of the table, too.
	Identity string
}

// Column is one column of a table. A limit of zero means: no limit.
type Column struct {
	Name      string
	Kind      Kind
	DBType    string // the database's own name of the type, for messages and casts
	Nullable  bool
	Default   bool // has a default: may be left out of an insert
	Constant  Raw  // the default as a text, if it is the same for every row: 'd', and not now()
	Generated bool // computed or identity always: cannot be written
	// Allow is the remedy for a Generated column of identity. A computed one has none.
	Allow    string
	Bits     int // KindInteger: 8, 16, 24, 32 or 64; KindFloat: 32 or 64
	Unsigned bool
	MaxChars int // KindText: characters
	MaxBytes int // KindText, KindBytes, KindOther: bytes
	// Padded: the length is fixed. A KindText column drops blanks at the end, a KindBytes
	// column pads values shorter than MaxBytes.
	Padded    bool
	Precision int // KindNumeric, and a KindFloat that rounds to Scale
	Scale     int
	// LastMember: of several members of one name in a JSON object the column keeps the last.
	LastMember bool
	// Form, if set, is a regular expression for the texts that a KindOther column keeps
	// unchanged; the database might silently change others.
	Form string
	// Values are the allowed values of an enumerated column; Several: any number of them,
	// separated by commas (MariaDB's SET).
	Values  []string
	Several bool
	// Checks are the definitions of the constraints of the column's domain, by their names.
	Checks map[string]string
	// Folds names the collation or type by which the database equates texts of this column
	// that differ in their bytes. "": equal texts have equal bytes.
	Folds string
	// Exact is the remedy for a column with Folds.
	Exact string
	// TimeUnit is the finest step that a KindTimestamp column keeps, such as a
	// second for MySQL's plain DATETIME. Zero: a microsecond.
	TimeUnit time.Duration
}

// Takes describes the values of an enumerated column, such as `one of "new", "paid"`, for the
// reason of a dead letter.
func (c Column) Takes() string {
	const most = 30
	shown := make([]string, min(len(c.Values), most))
	for i := range shown {
		shown[i] = Quote(c.Values[i])
	}
	list := strings.Join(shown, ", ")
	if more := len(c.Values) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	if c.Several {
		return "any of " + list + ", with commas between them"
	}
	return "one of " + list
}

// Lists reports whether an enumerated column has the value in its list.
func (c Column) Lists(v Value) bool {
	if c.Several {
		return v.str == "" || !slices.ContainsFunc(strings.Split(v.str, ","),
			func(one string) bool { return !slices.Contains(c.Values, one) })
	}
	return slices.Contains(c.Values, v.str)
}

// Plan is the compiled write side of a mapping: which table, which columns, how.
// A sink may keep statements prepared for a *Plan.
type Plan struct {
	Table   Table
	Columns []PlanColumn // the written columns, in the order of Row.Values
	// Key are the indexes into Columns of the columns that identify a row. None: every
	// row is a new one.
	Key []int
	// Keep: an existing row stays unchanged. Key is the dedupe key then.
	Keep bool
	// Inputs names the inputs of every Record, in order. A sink that turns a row
	// into a dead letter writes RecordJSON(p.Inputs, row.Record).
	Inputs []string
}

// PlanColumn is one written column with its operation.
type PlanColumn struct {
	Column
	Op Op
}

// Op is the effect of a value on an existing row.
type Op uint8

// The operations of a column.
const (
	OpSet Op = iota // the new value replaces the old one
	OpAdd           // the new value is added to the old one; NULL counts as 0
)

// Row is one row to write. Values has one entry for every Plan.Columns; a deleted row has only its
// key columns set. An absent value (Value.IsAbsent) leaves the column of an existing row unchanged
// and gives that of a new row its default.
type Row struct {
	Values []Value
	Delete bool
	// Replace: an existing row is deleted first, so that unwritten and absent columns get
	// their defaults.
	Replace bool
	Record  Record // the source's record, for a dead letter
}

// DeadLetter is a record that does not fit, with the reason.
type DeadLetter struct {
	Record string // JSON object
	Error  string
}

// TableSpec is a table to be created for a job (`schema: create`), from its mapping alone.
type TableSpec struct {
	Name string
	// Columns are the key's first, then the others by name. They have name, kind and
	// nullability. A default is the number 0.
	Columns []Column
	Key     []string // the primary key; none: there is none
	Unique  []string // another unique index, for the dedupe key; none: there is none
}
