package sql

import (
	"io/fs"

	"baton/internal/flush/row"
)

// Dialect is one kind of database as a value, for the transaction, the migrations and the letters. A capability is a field.
type Dialect struct {
	// Files are queries.sql, with the queries that the common file lacks or that differ, preflight.sql, and migrations.
	Files fs.FS
	Form  string // of a DSN
	Goose string // goose's name of it; "" where one transaction does all migrations
	Quote Quote
	Words Words

	// Open checks a DSN. It does not connect.
	Open func(Setup) (Database, error)
	// Column is the column for one of a kind in a table made by baton; false if there is none. In a key some databases need a type of
	// limited length.
	Column func(c row.Column, inKey bool) (row.Column, bool)
	// TableOptions end CREATE TABLE.
	TableOptions string
	// OwnText is the type of the texts in baton's own tables.
	OwnText string
	// List is the condition that a column has one of these values, as it follows the
	// column's name; MaxList bounds its length, 0: any.
	List    func(values []string) (condition string, args []any)
	MaxList int
	// Same, if set, is the condition that a column, %s, has the value ?, where a plain comparison is wrong for some types.
	Same func(c row.Column) string
	// ComparesRows: a comparison of rows, (a, b) > (1, 2), uses an index.
	ComparesRows bool
	// OneWriter: a transaction that has written keeps all others from writing.
	OneWriter bool
	// UpdatesFirst, if set, reports whether a Task's UpdateFirst is possible for rows of a plan, for many of them by one statement.
	UpdatesFirst func(*row.Plan) bool
	// Probes: a Task's Probe costs less than a few single tries.
	Probes bool

	// Judge returns the meaning of an error for a batch.
	Judge func(error) Verdict
	// Explain returns the database's own message and its details.
	Explain func(error) string
	// RolledBack, if set, reports whether the server itself says that it has refused a statement, so that no transaction was applied.
	RolledBack func(error) bool
	// Hint, if set, returns the database's advice that the text of an error lacks.
	Hint func(error) string
	// LacksTable reports whether a query failed because a table is missing.
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

// Setup holds the settings for opening a database.
type Setup struct {
	DSN      string
	MaxConns int
	Limits   Limits
	Queries  Queries
	// Pooled: a pooler may give each transaction another session of the server. Without it a database finds that out alone, where it can.
	Pooled bool
}
