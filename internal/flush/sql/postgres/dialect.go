package postgres

import (
	"embed"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

//go:embed queries.sql preflight.sql migrations
var embedded embed.FS

// Dialect returns the dialect of PostgreSQL.
func Dialect() *sql.Dialect {
	return &sql.Dialect{
		Files: embedded,
		Form:  form,
		Quote: quote,
		Fragments: sql.Fragments{
			Now:      "now()",
			Ago:      "now() - make_interval(secs => ?)",
			At:       "to_char(%s, 'YYYY-MM-DD HH24:MI:SS.US')",
			Share:    " FOR SHARE",
			Update:   " FOR UPDATE",
			Contains: "strpos(%s, ?) > 0",
		},
		Open:         open,
		Column:       style,
		OwnText:      "text",
		List:         func(values []string) (string, []any) { return "= ANY (?)", []any{textArray(values)} },
		Same:         same,
		ComparesRows: true,
		UpdatesFirst: merges,
		Judge:        judge,
		RolledBack:   rolledBack,
		TimedOut:     func(err error) bool { return sqlState(err) == "57014" || sqlState(err) == "55P03" },
		Explain:      explainPostgres,
		Hint:         hint,
		LacksTable:   func(err error) bool { return sqlState(err) == "42P01" },
	}
}

// same returns the condition that compares a column with a value. It compares both as texts if the type may have no comparison.
func same(c row.Column) string {
	if c.Kind == row.KindOther {
		return "CAST(%s AS text) = CAST(CAST(CAST(? AS text) AS " + c.DBType + ") AS text)"
	}
	return "%s = ?"
}

func style(c row.Column, _ bool) (row.Column, bool) {
	column, ok := map[row.Kind]row.Column{
		row.KindInteger:   {DBType: "bigint", Bits: 64},
		row.KindFloat:     {DBType: "double precision", Bits: 64},
		row.KindNumeric:   {DBType: "numeric"},
		row.KindText:      {DBType: "text"},
		row.KindBytes:     {DBType: "bytea"},
		row.KindBoolean:   {DBType: "boolean"},
		row.KindTimestamp: {DBType: "timestamp with time zone", TimeUnit: sql.TimeUnit(6)},
		row.KindDate:      {DBType: "date"},
		row.KindJSON:      {DBType: "jsonb", LastMember: true},
		row.KindUUID:      {DBType: "uuid"},
	}[c.Kind]
	column.Kind = c.Kind
	return column, ok
}
