package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"baton/internal/flush"
)

var _ flush.TableCreator = (*Store)(nil)

// keyChars is the length of a text in a key of MySQL, which has none without one.
const keyChars = 255

// DescribeTable implements flush.TableCreator.
func (s *Store) DescribeTable(t flush.TableSpec) (ddl string, table flush.Table, err error) {
	q, style := s.style()
	table = flush.Table{Name: t.Name}
	var lines []string
	for _, c := range t.Columns {
		column, ok := style(c, slices.Contains(t.Key, c.Name) || slices.Contains(t.Unique, c.Name))
		if !ok {
			return "", table, fmt.Errorf("database %q: no table can be made with column %q, of type %s: make the table by hand", s.name, c.Name, c.Kind)
		}
		column.Name, column.Kind, column.Nullable, column.Default = c.Name, kept(s.driver, c.Kind), c.Nullable, c.Default
		line := q.ident(c.Name) + " " + column.DBType
		if !c.Nullable {
			line += " NOT NULL"
		}
		if c.Default {
			line += " DEFAULT 0"
		}
		lines = append(lines, line)
		table.Columns = append(table.Columns, column)
	}
	for _, unique := range []struct {
		words   string
		columns []string
	}{{"PRIMARY KEY", t.Key}, {"UNIQUE", t.Unique}} {
		if len(unique.columns) == 0 {
			continue
		}
		quoted := make([]string, len(unique.columns))
		for i, name := range unique.columns {
			quoted[i] = q.ident(name)
		}
		lines = append(lines, fmt.Sprintf("%s (%s)", unique.words, strings.Join(quoted, ", ")))
		table.Unique = append(table.Unique, unique.columns)
	}
	ddl = fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n  %s\n)", q.table(t.Name), strings.Join(lines, ",\n  "))
	if s.driver == "mysql" {
		// Keys of Redis differ in case; the collations that servers have by default do not.
		ddl += " ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
	}
	return ddl, table, nil
}

// CreateTable implements flush.TableCreator.
func (s *Store) CreateTable(ctx context.Context, t flush.TableSpec) error {
	ddl, _, err := s.DescribeTable(t)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.trip)
	defer cancel()
	err = s.exec(ctx, ddl)
	if err != nil {
		// PostgreSQL's IF NOT EXISTS fails where somebody else makes it just now.
		if _, missing := s.Table(ctx, t.Name); missing == nil {
			return nil
		}
	}
	return s.failed(ctx, fmt.Sprintf("create table %q", t.Name), err)
}

// exec runs one statement of our own outside the protocol.
func (s *Store) exec(ctx context.Context, statement string) error {
	m, err := s.database.migration()
	if err != nil {
		return err
	}
	_, err = m.db.ExecContext(ctx, statement)
	if released := m.release(); err == nil {
		err = released
	}
	return err
}

// style is how a kind of database quotes, and which column it has for one of a kind.
func (s *Store) style() (quote, func(c flush.Column, key bool) (flush.Column, bool)) {
	switch s.driver {
	case "postgres":
		return pgQuote, postgresStyle
	case "mysql":
		return mysqlQuote, mysqlStyle
	}
	return sqliteQuote, sqliteStyle
}

func postgresStyle(c flush.Column, _ bool) (flush.Column, bool) {
	column, ok := map[flush.Kind]flush.Column{
		flush.KindInteger:   {DBType: "bigint", Bits: 64},
		flush.KindFloat:     {DBType: "double precision", Bits: 64},
		flush.KindNumeric:   {DBType: "numeric"},
		flush.KindText:      {DBType: "text"},
		flush.KindBytes:     {DBType: "bytea"},
		flush.KindBoolean:   {DBType: "boolean"},
		flush.KindTimestamp: {DBType: "timestamp with time zone", TimeUnit: timeUnit(6)},
		flush.KindDate:      {DBType: "date"},
		flush.KindJSON:      {DBType: "jsonb"},
		flush.KindUUID:      {DBType: "uuid"},
	}[c.Kind]
	return column, ok
}

// mysqlStyle has a JSON and a UUID for MariaDB and for MySQL, which have them not alike:
// one is a long text that has to be JSON, the other 36 characters.
func mysqlStyle(c flush.Column, key bool) (flush.Column, bool) {
	column, ok := map[flush.Kind]flush.Column{
		flush.KindInteger:   {DBType: "bigint", Bits: 64},
		flush.KindFloat:     {DBType: "double", Bits: 64},
		flush.KindNumeric:   {DBType: "decimal(65,30)", Precision: 65, Scale: 30},
		flush.KindText:      {DBType: "longtext", MaxBytes: 1<<32 - 1},
		flush.KindBytes:     {DBType: "longblob", MaxBytes: 1<<32 - 1},
		flush.KindBoolean:   {DBType: "tinyint(1)"},
		flush.KindTimestamp: {DBType: "datetime(6)", TimeUnit: timeUnit(6)},
		flush.KindDate:      {DBType: "date"},
		flush.KindJSON:      {DBType: "json"},
		flush.KindUUID:      {DBType: "char(36)", MaxChars: 36, Padded: true},
	}[c.Kind]
	switch {
	case key && c.Kind == flush.KindText:
		column = flush.Column{DBType: fmt.Sprintf("varchar(%d)", keyChars), MaxChars: keyChars}
	case key && c.Kind == flush.KindBytes:
		column = flush.Column{DBType: fmt.Sprintf("varbinary(%d)", keyChars), MaxBytes: keyChars}
	case key && c.Kind == flush.KindJSON:
		return column, false
	}
	return column, ok
}

func sqliteStyle(c flush.Column, _ bool) (flush.Column, bool) {
	column, ok := map[flush.Kind]flush.Column{
		flush.KindInteger:   {DBType: "INTEGER", Bits: 64},
		flush.KindFloat:     {DBType: "REAL", Bits: 64},
		flush.KindNumeric:   {DBType: "NUMERIC"},
		flush.KindText:      {DBType: "TEXT"},
		flush.KindBytes:     {DBType: "BLOB"},
		flush.KindBoolean:   {DBType: "BOOLEAN"},
		flush.KindTimestamp: {DBType: "TIMESTAMP"},
		flush.KindDate:      {DBType: "DATE"},
		flush.KindJSON:      {DBType: "JSON"},
		flush.KindUUID:      {DBType: "UUID"},
	}[c.Kind]
	return column, ok
}

// kept is the kind that the catalogue will tell.
func kept(driver string, k flush.Kind) flush.Kind {
	if driver == "mysql" && k == flush.KindUUID {
		return flush.KindText
	}
	return k
}
