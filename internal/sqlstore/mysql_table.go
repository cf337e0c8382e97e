package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"baton/internal/flush"
)

func (d mysqlDB) table(ctx context.Context, name string) (flush.Table, error) {
	schema, table := mysqlQuote.schema(name)
	asked := schema
	var kind, transactional, engine string
	err := d.db.QueryRowContext(ctx, d.store.queries["table"], schema, table).Scan(&schema, &table, &kind, &transactional, &engine)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		names, err := collect(ctx, d.db, d.store.queries["table_names"], scanName, schema)
		if err != nil {
			return flush.Table{}, err
		}
		return flush.Table{}, noTable(name, names)
	case err != nil:
		return flush.Table{}, err
	case kind != "BASE TABLE":
		return flush.Table{}, fmt.Errorf("%w: %s is a %s and cannot be flushed into", flush.ErrNoTable, name, strings.ToLower(kind))
	case transactional != "YES":
		return flush.Table{}, fmt.Errorf("table %s has engine %s, which knows no transactions: nothing could be rolled back. ALTER TABLE %s ENGINE=InnoDB", name, engine, mysqlQuote.table(name))
	}
	t := flush.Table{Name: mysqlQuote.join(asked, table)}
	if t.Columns, err = collect(ctx, d.db, d.store.queries["columns"], mysqlColumn, schema, table); err != nil {
		return t, err
	}
	t.Unique, err = uniqueIndexes(ctx, d.db, d.store.queries["unique"], schema, table)
	return t, err
}

func mysqlColumn(scan func(...any) error) (flush.Column, error) {
	var c flush.Column
	var data string
	var chars, octets uint64 // 4 GiB of a LONGTEXT
	var precision, scale, fraction int
	err := scan(&c.Name, &data, &c.DBType, &c.Nullable, &c.Default, &c.Generated, &chars, &octets, &precision, &scale, &fraction)
	data = strings.ToLower(data)
	c.Unsigned = strings.Contains(c.DBType, "unsigned")
	integers := map[string]int{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
	switch data {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		c.Kind, c.Bits = flush.KindInteger, integers[data]
		if c.DBType == "tinyint(1)" { // what BOOLEAN is short for
			c.Kind, c.Bits = flush.KindBoolean, 0
		}
	case "bit": // a number to us; more bits than it has are refused by the server
		c.Kind, c.Bits, c.Unsigned = flush.KindInteger, 64, true
	case "float", "double":
		c.Kind, c.Bits = flush.KindFloat, map[string]int{"float": 32, "double": 64}[data]
		if strings.Contains(c.DBType, ",") { // float(7,2) rounds
			c.Precision, c.Scale = precision, scale
		}
	case "decimal":
		c.Kind, c.Precision, c.Scale = flush.KindNumeric, precision, scale
	case "char", "varchar":
		c.Kind, c.MaxChars, c.Padded = flush.KindText, int(chars), data == "char"
	case "tinytext", "text", "mediumtext", "longtext":
		c.Kind, c.MaxBytes = flush.KindText, int(octets)
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		c.Kind, c.MaxBytes, c.Padded = flush.KindBytes, int(octets), data == "binary"
	case "timestamp", "datetime":
		c.Kind, c.TimeUnit = flush.KindTimestamp, timeUnit(fraction)
	case "date":
		c.Kind = flush.KindDate
	case "json":
		c.Kind = flush.KindJSON
	case "uuid":
		c.Kind = flush.KindUUID
	default:
		c.Kind, c.Form = flush.KindOther, mysqlForm(data, c.DBType, fraction)
	}
	return c, err
}

// mysqlForm is the form of the texts that these types keep. To an ENUM "1" is its
// first value, to a YEAR 24 is 2024, to a TIME "100" is a minute.
func mysqlForm(data, full string, fraction int) string {
	switch data {
	case "year":
		return `\d{4}`
	case "time":
		return fmt.Sprintf(`-?\d+:\d\d(:\d\d(\.\d{0,%d}0*)?)?`, fraction)
	case "enum", "set":
		_, list, _ := strings.Cut(full, "(")
		var values []string
		for _, part := range mysqlValue.FindAllString(list, -1) {
			value := strings.ReplaceAll(part[1:len(part)-1], "''", "'")
			values = append(values, regexp.QuoteMeta(value))
		}
		one := "(" + strings.Join(values, "|") + ")"
		if data == "set" {
			return "(" + one + "(," + one + ")*)?"
		}
		return one
	}
	return ""
}

// mysqlValue is one value in the text of an ENUM or SET.
var mysqlValue = regexp.MustCompile("'(?:[^']|'')*'")

// uniqueIndexes reads rows of index, column, and whether the column is only part
// of one or an expression: an index with such a column does not count.
func uniqueIndexes(ctx context.Context, db *sql.DB, query string, args ...any) ([][]string, error) {
	type part struct {
		index, column string
		partial       bool
	}
	parts, err := collect(ctx, db, query, func(scan func(...any) error) (part, error) {
		var p part
		var column sql.NullString
		err := scan(&p.index, &column, &p.partial)
		p.column = column.String
		return p, err
	}, args...)
	if err != nil {
		return nil, err
	}
	var unique [][]string
	for i := 0; i < len(parts); {
		var columns []string
		whole := true
		start := i
		for ; i < len(parts) && parts[i].index == parts[start].index; i++ {
			columns = append(columns, parts[i].column)
			whole = whole && !parts[i].partial
		}
		if whole {
			unique = append(unique, columns)
		}
	}
	return unique, nil
}

func scanName(scan func(...any) error) (string, error) {
	var name string
	err := scan(&name)
	return name, err
}

// collect reads all rows of a query.
func collect[T any](ctx context.Context, db *sql.DB, query string, read func(scan func(...any) error) (T, error), args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong
	var all []T
	for rows.Next() {
		one, err := read(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
