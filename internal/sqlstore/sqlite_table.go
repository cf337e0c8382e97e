package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"baton/internal/flush"
)

func (d sqliteDB) table(ctx context.Context, name string) (flush.Table, error) {
	q := d.store.queries
	asked, table := sqliteQuote.schema(name)
	schema := asked
	if schema == "" {
		schema = "main"
	}
	if _, err := os.Stat(d.path); errors.Is(err, fs.ErrNotExist) { // to open it were to make it, which is not for those who only look
		return flush.Table{}, fmt.Errorf("%w: there is no file %s: correct the dsn, or create it with the table %s", flush.ErrNoTable, d.path, name)
	}
	var kind string
	err := d.db.QueryRowContext(ctx, q["table"], schema, table).Scan(&table, &kind)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		names, err := collect(ctx, d.db, q["table_names"], scanName, schema)
		if err != nil {
			return flush.Table{}, err
		}
		return flush.Table{}, noTable(name, names)
	case err != nil:
		return flush.Table{}, err
	case kind != "table":
		return flush.Table{}, fmt.Errorf("%w: %s is a %s and cannot be flushed into", flush.ErrNoTable, name, kind)
	}
	t := flush.Table{Name: sqliteQuote.join(asked, table)}
	columns, err := collect(ctx, d.db, q["columns"], sqliteCatalogueColumn, table, schema)
	if err != nil {
		return t, err
	}
	var primary []string
	for _, c := range columns {
		if c.hidden != 1 { // a hidden column of a virtual table
			t.Columns = append(t.Columns, c.Column)
		}
	}
	slices.SortFunc(columns, func(a, b sqliteCatalogue) int { return a.primary - b.primary })
	for _, c := range columns {
		if c.primary > 0 {
			primary = append(primary, c.Name)
		}
	}
	if t.Unique, err = uniqueIndexes(ctx, d.db, q["unique"], table, schema); err != nil {
		return t, err
	}
	// INTEGER PRIMARY KEY has no index of its own: it is the table's order.
	if len(primary) > 0 && (len(t.Unique) == 0 || !slices.Equal(t.Unique[0], primary)) {
		t.Unique = slices.Insert(t.Unique, 0, primary)
	}
	for i := range t.Columns {
		if len(primary) == 1 && primary[0] == t.Columns[i].Name && strings.EqualFold(t.Columns[i].DBType, "INTEGER") {
			t.Columns[i].Default = true // SQLite numbers the rows itself
		}
	}
	return t, nil
}

type sqliteCatalogue struct {
	flush.Column
	primary, hidden int
}

func sqliteCatalogueColumn(scan func(...any) error) (sqliteCatalogue, error) {
	var c sqliteCatalogue
	var notNull bool
	err := scan(&c.Name, &c.DBType, &notNull, &c.Default, &c.primary, &c.hidden)
	c.Nullable = !notNull && c.primary == 0
	c.Generated = c.hidden == 2 || c.hidden == 3
	c.Kind = sqliteKind(c.DBType)
	if c.Kind == flush.KindInteger || c.Kind == flush.KindFloat {
		c.Bits = 64
	}
	return c, err
}

// sqliteKind goes by what people mean by a declared type, then by SQLite's own
// rules. SQLite enforces no length and no precision, so none is reported.
func sqliteKind(declared string) flush.Kind {
	d, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(declared)), "(")
	d = strings.TrimSpace(d)
	switch d {
	case "BOOL", "BOOLEAN":
		return flush.KindBoolean
	case "DATETIME", "TIMESTAMP", "TIMESTAMPTZ":
		return flush.KindTimestamp
	case "DATE":
		return flush.KindDate
	case "JSON", "JSONB":
		return flush.KindJSON
	case "UUID":
		return flush.KindUUID
	case "NUMERIC", "DECIMAL", "NUMBER":
		return flush.KindNumeric
	case "BINARY", "VARBINARY", "BYTEA":
		return flush.KindBytes
	}
	for _, rule := range []struct {
		part string
		kind flush.Kind
	}{
		{"INT", flush.KindInteger}, {"CHAR", flush.KindText}, {"CLOB", flush.KindText}, {"TEXT", flush.KindText},
		{"BLOB", flush.KindBytes}, {"REAL", flush.KindFloat}, {"FLOA", flush.KindFloat}, {"DOUB", flush.KindFloat},
	} {
		if strings.Contains(d, rule.part) {
			return rule.kind
		}
	}
	return flush.KindOther
}
