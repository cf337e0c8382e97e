package sqlite

import (
	"embed"
	"strings"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

//go:embed queries.sql preflight.sql migrations
var embedded embed.FS

// Dialect returns the dialect of SQLite.
func Dialect() *sql.Dialect {
	return &sql.Dialect{
		Files: embedded,
		Form:  "the path of a file",
		Goose: "sqlite3",
		Quote: quote,
		Fragments: sql.Fragments{
			Now: "strftime('%Y-%m-%d %H:%M:%f', 'now')",
			Ago: "strftime('%Y-%m-%d %H:%M:%f', 'now', '-' || ? || ' seconds')",
			At:  "%s",
			// No row locks are needed, because BEGIN IMMEDIATE has locked the whole database already.
			Share:    "",
			Update:   "",
			Contains: "instr(%s, ?) > 0",
		},
		Open:         open,
		Column:       style,
		OwnText:      "TEXT",
		List:         stdsql.ListOfValues,
		MaxList:      stdsql.ListChunk,
		Typed:        func(quoted string) string { return "+" + quoted }, // otherwise the driver converts texts to times
		ComparesRows: true,
		OneWriter:    true,
		Judge:        judge,
		Explain:      error.Error,
		RolledBack:   busy,
		TimedOut:     busy,
		LacksTable:   func(err error) bool { return strings.Contains(err.Error(), "no such table") },
	}
}

func style(c row.Column, _ bool) (row.Column, bool) {
	column, ok := map[row.Kind]row.Column{
		row.KindInteger:   {DBType: "INTEGER", Bits: 64},
		row.KindFloat:     {DBType: "REAL", Bits: 64},
		row.KindNumeric:   {DBType: "NUMERIC"},
		row.KindText:      {DBType: "TEXT"},
		row.KindBytes:     {DBType: "BLOB"},
		row.KindBoolean:   {DBType: "BOOLEAN"},
		row.KindTimestamp: {DBType: "TIMESTAMP"},
		row.KindDate:      {DBType: "DATE"},
		row.KindJSON:      {DBType: "JSON"},
		row.KindUUID:      {DBType: "UUID"},
	}[c.Kind]
	column.Kind = c.Kind
	return column, ok
}
