package mysql

import (
	"embed"
	"fmt"
	"slices"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

//go:embed queries.sql preflight.sql migrations
var embedded embed.FS

// Dialect returns the dialect of MySQL and MariaDB.
func Dialect() *sql.Dialect {
	return &sql.Dialect{
		Files: embedded,
		Form:  form,
		Goose: "mysql",
		Quote: quote,
		Fragments: sql.Fragments{
			Now: "UTC_TIMESTAMP(6)",
			Ago: "UTC_TIMESTAMP(6) - INTERVAL ? SECOND",
			At:  "%s",
			// FOR SHARE is not used, because MariaDB lacks it. MySQL has both forms.
			Share:    " LOCK IN SHARE MODE",
			Update:   " FOR UPDATE",
			Contains: "INSTR(%s, ?) > 0",
		},
		Open:   open,
		Column: style,
		// Keys of Redis may differ only in case or in trailing blanks. By default a server treats such texts as equal. MySQL and MariaDB
		// have different names for the collation that distinguishes them.
		TableOptions: " ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */",
		OwnText:      "varchar(255)",
		List:         stdsql.ListOfValues,
		MaxList:      stdsql.ListChunk,
		Probes:       true,
		Judge:        judge,
		RolledBack:   rolledBack,
		TimedOut:     func(err error) bool { return slices.Contains([]uint16{1205, 1317, 1969, 3024}, errorNumber(err)) },
		Hint:         hint,
		Explain:      error.Error,
		LacksTable:   func(err error) bool { return errorNumber(err) == 1146 },
	}
}

// keyChars is the length of a text column in a key, because MySQL requires a length there.
const keyChars = 255

// style returns the type of a column. MariaDB and MySQL have different types for JSON and UUID, so for them style chooses types that both
// servers have. JSON becomes a long text that must be JSON, and a UUID becomes a text of 36 characters.
func style(c row.Column, key bool) (row.Column, bool) {
	column, ok := map[row.Kind]row.Column{
		row.KindInteger:   {DBType: "bigint", Bits: 64},
		row.KindFloat:     {DBType: "double", Bits: 64},
		row.KindNumeric:   {DBType: "decimal(65,30)", Precision: 65, Scale: 30},
		row.KindText:      {DBType: "longtext", MaxBytes: 1<<32 - 1},
		row.KindBytes:     {DBType: "longblob", MaxBytes: 1<<32 - 1},
		row.KindBoolean:   {DBType: "tinyint(1)"},
		row.KindTimestamp: {DBType: "datetime(6)", TimeUnit: sql.TimeUnit(6)},
		row.KindDate:      {DBType: "date"},
		row.KindJSON:      {DBType: "json"},
		row.KindUUID:      {DBType: "char(36)", MaxChars: 36, Padded: true},
	}[c.Kind]
	column.Kind = c.Kind
	switch {
	case key && c.Kind == row.KindText:
		column = row.Column{Kind: c.Kind, DBType: fmt.Sprintf("varchar(%d)", keyChars), MaxChars: keyChars}
	case key && c.Kind == row.KindBytes:
		column = row.Column{Kind: c.Kind, DBType: fmt.Sprintf("varbinary(%d)", keyChars), MaxBytes: keyChars}
	case key && c.Kind == row.KindJSON:
		return column, false
	case c.Kind == row.KindUUID:
		column.Kind = row.KindText // the kind that the catalogue shows
	}
	return column, ok
}
