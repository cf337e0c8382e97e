package sql

import (
	"io/fs"

	"baton/internal/flush/row"
)

// Dialect describes how one kind of database differs from the others in the transaction of a batch, the migrations and the dead letters. If
// a kind of database has a capability, a field says so.
type Dialect struct {
	// Files contains queries.sql, with the queries that differ from the common file or are not in it, preflight.sql, and the migrations.
	Files     fs.FS
	Form      string // the form of a DSN, for messages
	Goose     string // goose's name of the database; "" if one transaction runs all migrations
	Quote     Quote
	Fragments Fragments

	// Open checks a DSN. It does not connect.
	Open func(Setup) (Database, error)
	// Column returns the type of a column in a table that baton makes. It returns false if the database has no such type. In a key, some
	// databases need a type of limited length.
	Column func(c row.Column, inKey bool) (row.Column, bool)
	// TableOptions is the text at the end of CREATE TABLE.
	TableOptions string
	// OwnText is the type of text columns in baton's own tables.
	OwnText string
	// List returns the condition that a column has one of these values, as text to be written after the column's name. MaxList limits the
	// number of values. If MaxList is 0, there is no limit.
	List    func(values []string) (condition string, args []any)
	MaxList int
	// Typed, if set, returns an expression for a column, so that the driver returns each value with the type that the value is stored with.
	// Typed is set for databases that store values of any type in any column.
	Typed func(quoted string) string
	// Same, if set, returns the condition that a column has a value. In the condition "%s" stands for the column, and "?" for the value.
	// Same is set for databases that compare some types incorrectly with =.
	Same func(c row.Column) string
	// ComparesRows means that a comparison of rows, such as (a, b) > (1, 2), uses an index.
	ComparesRows bool
	// OneWriter means that a transaction that has written prevents all other transactions from writing.
	OneWriter bool
	// UpdatesFirst, if set, reports whether a Task may set UpdateFirst for the rows of a plan, so that one statement updates many rows.
	UpdatesFirst func(*row.Plan) bool
	// Probes means that a Task with Probe costs less than trying a few rows one by one.
	Probes bool

	// Judge returns the verdict about an error for a batch.
	Judge func(error) Verdict
	// Explain returns the database's own message with its details.
	Explain func(error) string
	// RolledBack, if set, reports whether the error says that the server has refused a statement, so that no transaction was applied.
	RolledBack func(error) bool
	// TimedOut reports whether the database has ended a statement because the statement, or its wait for a lock, took too long.
	TimedOut func(error) bool
	// Hint, if set, returns the database's advice that the text of an error does not contain.
	Hint func(error) string
	// LacksTable reports whether a query has failed because a table is missing.
	LacksTable func(error) bool
}

// Fragments are SQL texts that differ between databases. They replace names in braces, such as {now}, in the queries.
type Fragments struct {
	Now      string // the present time of the database's clock
	Ago      string // the time a number of seconds ago, where "?" is that number
	At       string // the time in the column "%s" as text: UTC, with up to six decimals
	Share    string // locks a row that is read against changes
	Update   string // locks a row that is read against all other transactions
	Contains string // the condition that the column "%s" contains the literal text "?"
}

// Setup contains the settings for opening a database.
type Setup struct {
	DSN      string
	MaxConns int
	Limits   Limits
	Queries  Queries
	// Pooled means that a pooler may give each transaction another session of the server. If Pooled is false, the dialect itself tries to
	// detect such a pooler.
	Pooled bool
}
