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
	if _, err := os.Stat(d.path); errors.Is(err, fs.ErrNotExist) { // opening would create it, which a read must not
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
		return row.Table{}, fmt.Errorf("%w: %s is a %s and cannot be flushed into", flush.ErrNoTable, name, kind)
	}
	t := row.Table{Name: quote.Join(asked, table), Identity: version} // SQLite numbers changes of the whole schema only
	columns, err := stdsql.Collect(ctx, d.Pool, q["columns"], catalogueColumn, table, schema)
	if err != nil {
		return t, err
	}
	var primary []string
	for _, c := range columns {
		if c.hidden != 1 { // a hidden column of a virtual table
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
	// INTEGER PRIMARY KEY has no index of its own: it is the table's order.
	if len(primary) > 0 && (len(t.Unique) == 0 || !slices.Equal(t.Unique[0], primary)) {
		t.Unique = slices.Insert(t.Unique, 0, primary)
	}
	for i := range t.Columns {
		if len(primary) == 1 && primary[0] == t.Columns[i].Name && strings.EqualFold(t.Columns[i].DBType, "INTEGER") {
			t.Columns[i].Default = true // SQLite numbers the rows itself
		}
	}
	return t, d.findFolds(ctx, &t, table, schema)
}

// findFolds finds how the columns of unique indexes compare texts. The catalogue has the collations
// of indexes only, but rows are also searched by the column's own.
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
			c.Exact = "create the table again without COLLATE " + collation + ", since SQLite changes no column, and copy its rows"
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

// spell is an expression for the text of a default.
func spell(c row.Column, text string) string {
	if c.Kind == row.KindBytes {
		return "CAST(" + text + " AS BLOB)"
	}
	return "CAST(" + text + " AS TEXT)"
}

// kindOf goes by what people mean by a declared type, then by SQLite's own
// rules. SQLite enforces no length and no precision, so none is reported.
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
