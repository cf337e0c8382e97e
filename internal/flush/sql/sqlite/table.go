package sqlite

import (
	"context"
	dbsql "database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

func (d database) Table(ctx context.Context, name string) (row.Table, error) {
	q := d.Queries
	asked, table := quote.Schema(name)
	schema := asked
	if schema == "" {
		schema = "main"
	}
	if _, err := os.Stat(d.path); errors.Is(err, fs.ErrNotExist) { // opening would create the file, which a read must not do
		return row.Table{}, fmt.Errorf("%w: there is no file %s: correct the dsn, or create it with the table %s", flush.ErrNoTable,
			d.path, name)
	}
	var kind, version string
	err := d.Pool.QueryRowContext(ctx, q["table"], schema, table).Scan(&table, &kind, &version)
	switch {
	case errors.Is(err, dbsql.ErrNoRows):
		names, err := stdsql.Collect(ctx, d.Pool, q["table_names"], stdsql.ScanName, schema)
		if err != nil {
			return row.Table{}, err
		}
		return row.Table{}, sql.NoTable(name, names)
	case err != nil:
		return row.Table{}, err
	case kind != "table":
		return row.Table{}, fmt.Errorf("%w: %s is a %s, but baton can write only to tables", flush.ErrNoTable, name, kind)
	}
	t := row.Table{Name: quote.Join(asked, table), Identity: version} // SQLite counts only changes of the whole schema
	columns, err := stdsql.Collect(ctx, d.Pool, q["columns"], catalogueColumn, table, schema)
	if err != nil {
		return t, err
	}
	var primary []string
	for _, c := range columns {
		if c.hidden != 1 { // not a hidden column of a virtual table
			t.Columns = append(t.Columns, c.Column)
		}
	}
	if err := stdsql.Evaluate(ctx, d.Pool, t.Columns, spell); err != nil {
		return t, err
	}
	slices.SortFunc(columns, func(a, b catalogue) int { return a.primary - b.primary })
	for _, c := range columns {
		if c.primary > 0 {
			primary = append(primary, c.Name)
		}
	}
	if t.Unique, err = stdsql.UniqueIndexes(ctx, d.Pool, q["unique"], table, schema); err != nil {
		return t, err
	}
	// INTEGER PRIMARY KEY has no index, because it is the order of the table.
	if len(primary) > 0 && (len(t.Unique) == 0 || !slices.Equal(t.Unique[0], primary)) {
		t.Unique = slices.Insert(t.Unique, 0, primary)
	}
	for i := range t.Columns {
		if len(primary) == 1 && primary[0] == t.Columns[i].Name && strings.EqualFold(t.Columns[i].DBType, "INTEGER") {
			t.Columns[i].Default = true // SQLite itself numbers the rows
		}
	}
	return t, d.findFolds(ctx, &t, table, schema)
}

// findFolds finds out how the columns of unique indexes compare texts. The catalogue contains only the collations of indexes, but rows are
// also searched by the column's own collation.
func (d database) findFolds(ctx context.Context, t *row.Table, table, schema string) error {
	for i := range t.Columns {
		c := &t.Columns[i]
		unique := slices.ContainsFunc(t.Unique, func(u []string) bool { return slices.Contains(u, c.Name) })
		if !unique || c.Kind != row.KindText && c.Kind != row.KindOther {
			continue
		}
		probe := fmt.Sprintf(d.Queries["folds"], quote.Ident(c.Name), quote.Ident(schema)+"."+quote.Ident(table))
		var collation string
		if err := d.Pool.QueryRowContext(ctx, probe, table, schema, c.Name).Scan(&collation); err != nil {
			return err
		}
		if collation != "" {
			c.Folds = "the collation " + collation
			c.Exact = "create the table again without COLLATE " + collation + " and copy its rows, because SQLite cannot change a column"
		}
	}
	return nil
}

type catalogue struct {
	row.Column
	primary, hidden int
}

func catalogueColumn(scan func(...any) error) (catalogue, error) {
	var c catalogue
	var notNull bool
	var initial string
	err := scan(&c.Name, &c.DBType, &notNull, &c.Default, &initial, &c.primary, &c.hidden)
	c.Nullable = !notNull && c.primary == 0
	c.Generated = c.hidden == 2 || c.hidden == 3
	c.Kind = kindOf(c.DBType)
	c.Constant = row.Raw{Text: initial, OK: c.Default && !c.Generated && literal.MatchString(initial)}
	if c.Kind == row.KindInteger || c.Kind == row.KindFloat {
		c.Bits = 64
	}
	return c, err
}

var literal = stdsql.Literals(`'(?:[^']|'')*'`)

// spell returns an SQL expression for the text of a default.
func spell(c row.Column, text string) string {
	if c.Kind == row.KindBytes {
		return "CAST(" + text + " AS BLOB)"
	}
	return "CAST(" + text + " AS TEXT)"
}

// kindOf returns the kind of a column by the usual meaning of its declared type, or else by SQLite's own rules. It reports no length and no
// precision, because SQLite enforces none.
func kindOf(declared string) row.Kind {
	d, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(declared)), "(")
	d = strings.TrimSpace(d)
	switch d {
	case "BOOL", "BOOLEAN":
		return row.KindBoolean
	case "DATETIME", "TIMESTAMP", "TIMESTAMPTZ":
		return row.KindTimestamp
	case "DATE":
		return row.KindDate
	case "JSON", "JSONB":
		return row.KindJSON
	case "UUID":
		return row.KindUUID
	case "NUMERIC", "DECIMAL", "NUMBER":
		return row.KindNumeric
	case "BINARY", "VARBINARY", "BYTEA":
		return row.KindBytes
	}
	for _, rule := range []struct {
		part string
		kind row.Kind
	}{
		{"INT", row.KindInteger}, {"CHAR", row.KindText}, {"CLOB", row.KindText}, {"TEXT", row.KindText},
		{"BLOB", row.KindBytes}, {"REAL", row.KindFloat}, {"FLOA", row.KindFloat}, {"DOUB", row.KindFloat},
	} {
		if strings.Contains(d, rule.part) {
			return rule.kind
		}
	}
	return row.KindOther
}
