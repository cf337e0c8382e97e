package sql

import (
	"io/fs"

	"baton/internal/flush/row"
)

// Dialect is one kind of database as a value: all that the transaction, the migrations
// and the letters must know of it. A capability is a field.
type Dialect struct {
	// Files are queries.sql, which has what the common file lacks or says otherwise,
	// preflight.sql, and migrations.
	Files fs.FS
	Goose string // what goose calls it; "" where one transaction does all migrations
	Quote Quote
	Words Words

	// Open checks a DSN. It does not connect.
	Open func(Setup) (Database, error)
	// Column is the column that a table made by baton has for one of a kind; false if
	// there is none. In a key some databases need a type of limited length.
	Column func(c row.Column, inKey bool) (row.Column, bool)
	// TableOptions end CREATE TABLE.
	TableOptions string
	// OwnText is the type of the texts in baton's own tables.
	OwnText string
	// List is the condition that a column has one of these values, as it follows the
	// column's name; MaxList bounds its length, 0: any.
	List    func(values []string) (condition string, args []any)
	MaxList int
	// Same, if set, is the condition that a column, %s, has the value ?, where a plain comparison does
	// not do for all types.
	Same func(c row.Column) string
	// ComparesRows: a comparison of rows, (a, b) > (1, 2), uses an index.
	ComparesRows bool
	// OneWriter: a transaction that has written keeps all others from writing.
	OneWriter bool
	// UpdatesFirst, if set, says whether a Task's UpdateFirst is done for rows of a plan, for
	// many of them by one statement.
	UpdatesFirst func(*row.Plan) bool
	// Probes: a Task's Probe costs less than to try a few rows.
	Probes bool

	// Judge says what an error means for a batch.
	Judge func(error) Verdict
	// Explain is the database's own message, with what it says beside it.
	Explain func(error) string
	// LacksTable says that a query has named a table which is not there.
	LacksTable func(error) bool
}

// Words are the pieces of SQL that replace {name} in the queries.
type Words struct {
	Now      string // the database's clock
	Ago      string // the moment ? seconds before it
	At       string // the time of a dead letter as text: UTC, with up to six decimals
	Share    string // locks a row that is read against writers
	Update   string // locks it against all others
	Contains string // %s contains ?, letter by letter
}

// Setup is what a database is opened with.
type Setup struct {
	DSN      string
	MaxConns int
	Limits   Limits
	Queries  Queries
	// Pooled: a pooler may give each transaction another session of the server. Without it a
	// database finds that out by itself, where it can.
	Pooled bool
}
