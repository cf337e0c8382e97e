package row

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Table describes a table of the database, as the database's catalogue reports it.
type Table struct {
	Name    string
	Columns []Column
	// Unique lists the columns of each unique index, the primary key first.
	Unique [][]string
	// UpsertOnly means that only upserts may change existing rows, because triggers would behave differently for other statements, or
	// because a comparison of keys finds other rows than the unique index.
	UpsertOnly bool
	// Identity changes when the table is created again, truncated or restored, if the database can detect that. "" means that the database
	// cannot detect it. Identity may also change after other changes of the table.
	Identity string
}

// Column is one column of a table. If a limit is zero, there is no such limit.
type Column struct {
	Name      string
	Kind      Kind
	DBType    string // the database's own name of the type, for messages and casts
	Nullable  bool
	Default   bool // the column has a default, and may be left out of an insert
	Constant  Raw  // the default as a text, if the default is the same for every row, such as 'd', and not now()
	Generated bool // computed, or an identity that is always generated: it cannot be written
	// Allow is the remedy for a Generated column that is an identity. A computed column has none.
	Allow    string
	Bits     int // KindInteger: 8, 16, 24, 32 or 64; KindFloat: 32 or 64
	Unsigned bool
	MaxChars int // KindText: the maximum number of characters
	MaxBytes int // KindText, KindBytes, KindOther: the maximum number of bytes
	// Padded means that the column has a fixed length. A KindText column drops blanks at the end. A KindBytes column pads values that are
	// shorter than MaxBytes.
	Padded    bool
	Precision int // KindNumeric, and a KindFloat that rounds to Scale
	Scale     int
	// LastMember means that the column stores only the last of several members that have the same name in a JSON object.
	LastMember bool
	// Form, if set, is a regular expression for the texts that a KindOther column stores unchanged. The database might silently change
	// other texts.
	Form string
	// Values are the allowed values of an enumerated column. Several means that the column stores any number of them, separated by commas
	// (MariaDB's SET).
	Values  []string
	Several bool
	// Checks are the definitions of the constraints of the column's domain, by their names.
	Checks map[string]string
	// Folds is the name of a collation or type. Because of this collation or type, the database treats some different texts of this column
	// as equal. "" means that only identical texts are equal.
	Folds string
	// Exact says how to change a column with Folds, so that only identical texts are equal in it.
	Exact string
	// TimeUnit is the smallest step of time that a KindTimestamp column stores, such as a second for MySQL's plain DATETIME. Zero means a
	// microsecond.
	TimeUnit time.Duration
}

// Takes describes the values that an enumerated column accepts, such as `one of "new", "paid"`. The description is used in the reason of a
// dead letter.
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

// Plan is the part of a compiled mapping that a sink needs to write rows: the table, the columns and the operations. A sink may keep
// statements prepared for a *Plan.
type Plan struct {
	Table   Table
	Columns []PlanColumn // the written columns, in the order of Row.Values
	// Key has the indexes in Columns of the columns that identify a row. Without a key every row is a new one.
	Key []int
	// Keep means that an existing row stays unchanged. Then Key is the dedupe key.
	Keep bool
	// Inputs are the names of the inputs of every Record, in the order of Record.Inputs. A sink that turns a row into a dead letter writes
	// RecordJSON(p.Inputs, row.Record).
	Inputs []string
}

// PlanColumn is a column to be written, and the operation that writes it.
type PlanColumn struct {
	Column
	Op Op
}

// Op says how a new value changes the old value in an existing row.
type Op uint8

// The operations of a column.
const (
	OpSet Op = iota // the new value replaces the old one
	OpAdd           // the new value is added to the old one; NULL counts as 0
)

// Row is one row to write. Values has an entry for each of Plan.Columns; a row to be deleted has only its key columns set. If a value is
// absent (Value.IsAbsent), an existing row keeps its value in the column, and a new row gets the column's default.
type Row struct {
	Values []Value
	Delete bool
	// Replace means that an existing row is deleted first, so that unwritten and absent columns get their defaults.
	Replace bool
	// Adopted means that an accepted pass writes the row over a row that the job never wrote.
	Adopted bool
	Record  Record // the record from which the row was made, in case the row becomes a dead letter
}

// DeadLetter is a record that does not fit, with the reason.
type DeadLetter struct {
	Record string // JSON object
	Error  string
}

// TableSpec describes a table that a job creates (`schema: create`). A TableSpec is made from the job's mapping alone.
type TableSpec struct {
	Name string
	// Columns has first the columns of the key, and then the other columns in the order of their names. Each column has a name, a kind and
	// its nullability. If a column has a default, the default is the number 0.
	Columns []Column
	Key     []string // the primary key; empty if there is none
	Unique  []string // a further unique index, for the dedupe key; empty if there is none
}
