package mysql

import (
	"context"
	dbsql "database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

func (d database) Table(ctx context.Context, name string) (row.Table, error) {
	schema, table := quote.Schema(name)
	asked := schema
	var kind, transactional, engine, created string
	err := d.Pool.QueryRowContext(ctx, d.Queries["table"], schema, table).Scan(&schema, &table, &kind, &transactional, &engine, &created)
	switch {
	case errors.Is(err, dbsql.ErrNoRows):
		names, err := stdsql.Collect(ctx, d.Pool, d.Queries["table_names"], stdsql.ScanName, schema)
		if err != nil {
			return row.Table{}, err
		}
		return row.Table{}, sql.NoTable(name, names)
	case err != nil:
		return row.Table{}, err
	case kind != "BASE TABLE" && kind != "SYSTEM VERSIONED":
		return row.Table{}, fmt.Errorf("%w: %s is a %s and cannot be flushed into", flush.ErrNoTable, name, strings.ToLower(kind))
	case transactional != "YES":
		return row.Table{}, fmt.Errorf("table %s has engine %s, which has no transactions: nothing could be rolled back. ALTER TABLE "+
			"%s ENGINE=InnoDB", name, engine, quote.Table(name))
	}
	t := row.Table{Name: quote.Join(asked, table)}
	if t.Identity, err = d.identity(ctx, schema, table, created); err != nil {
		return t, err
	}
	if t.Columns, err = stdsql.Collect(ctx, d.Pool, d.Queries["columns"], columnOf, schema, table); err != nil {
		return t, err
	}
	if err := stdsql.Evaluate(ctx, d.Pool, t.Columns, spell); err != nil {
		return t, err
	}
	for i := range t.Columns {
		if c := &t.Columns[i]; c.Folds != "" {
			c.Exact = fmt.Sprintf("ALTER TABLE %s %s", quote.Table(t.Name), c.Exact)
		}
	}
	t.Unique, err = stdsql.UniqueIndexes(ctx, d.Pool, d.Queries["unique"], schema, table)
	return t, err
}

// identity tells a table from another one of its name.
func (d database) identity(ctx context.Context, schema, table, created string) (string, error) {
	if d.Certified() {
		return "", nil // each server of a cluster has made the table at another time
	}
	var id string
	err := d.Pool.QueryRowContext(ctx, d.Queries["table_id"], schema, table).Scan(&id)
	if errorNumber(err) == unknownTable {
		err = d.Pool.QueryRowContext(ctx, d.Queries["table_id_mysql"], schema, table).Scan(&id)
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && slices.Contains(hidesIDs, e.Number) || errors.Is(err, dbsql.ErrNoRows) {
		return created, nil
	}
	return created + "." + id, err
}

// hidesIDs are the answers of a server that shows no ids of tables: the right PROCESS is missing, or their table is.
var hidesIDs = []uint16{1227, unknownTable, 1146}

const unknownTable = 1109 // of information_schema

func columnOf(scan func(...any) error) (row.Column, error) {
	var c row.Column
	var data string
	var chars, octets uint64 // 4 GiB of a LONGTEXT
	var precision, scale, fraction int
	var charset, collation string
	var mariadb bool
	var initial dbsql.NullString
	err := scan(&c.Name, &data, &c.DBType, &c.Nullable, &c.Default, &c.Generated, &initial, &chars, &octets, &precision, &scale, &fraction,
		&charset, &collation, &mariadb)
	data = strings.ToLower(data)
	c.Unsigned = strings.Contains(c.DBType, "unsigned")
	integers := map[string]int{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
	switch data {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		c.Kind, c.Bits = row.KindInteger, integers[data]
		if c.DBType == "tinyint(1)" { // what BOOLEAN is short for
			c.Kind, c.Bits = row.KindBoolean, 0
		}
	case "bit": // a number to us; more bits than it has are refused by the server
		c.Kind, c.Bits, c.Unsigned = row.KindInteger, 64, true
	case "float", "double":
		c.Kind, c.Bits = row.KindFloat, map[string]int{"float": 32, "double": 64}[data]
		if strings.Contains(c.DBType, ",") { // float(7,2) rounds
			c.Precision, c.Scale = precision, scale
		}
	case "decimal":
		c.Kind, c.Precision, c.Scale = row.KindNumeric, precision, scale
	case "char", "varchar":
		c.Kind, c.MaxChars, c.Padded = row.KindText, int(chars), data == "char"
	case "tinytext", "text", "mediumtext", "longtext":
		c.Kind, c.MaxBytes = row.KindText, int(octets)
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		c.Kind, c.MaxBytes, c.Padded = row.KindBytes, int(octets), data == "binary"
	case "timestamp", "datetime":
		c.Kind, c.TimeUnit = row.KindTimestamp, sql.TimeUnit(fraction)
	case "date":
		c.Kind = row.KindDate
	case "json": // MySQL's own; MariaDB's is a text
		c.Kind, c.LastMember = row.KindJSON, true
	case "uuid":
		c.Kind = row.KindUUID
	case "enum", "set":
		c.Kind, c.Several = row.KindOther, data == "set"
		c.Values, c.Form = listed(c.DBType, c.Several)
	default:
		c.Kind, c.Form = row.KindOther, formOf(data, fraction)
	}
	c.Constant = constant(&c, initial, mariadb)
	if c.Kind == row.KindText && !exact(collation, c.Padded) {
		c.Folds = "the collation " + collation
		c.Exact = exactDefinition(c, charset, mariadb)
	}
	return c, err
}

var literal = stdsql.Literals(`'(?:[^'\\]|''|\\.)*'`)

// constant is the literal of a default. MariaDB shows it as SQL has it; MySQL shows a text without its quotes.
// The query leaves out MySQL's defaults that are expressions.
func constant(c *row.Column, shown dbsql.NullString, mariadb bool) row.Raw {
	if !c.Default || c.Generated || !shown.Valid {
		return row.Raw{}
	}
	initial := shown.String
	if !mariadb && !literal.MatchString(initial) {
		if c.Kind == row.KindTimestamp && strings.HasPrefix(initial, "CURRENT_TIMESTAMP") { // of 5.7
			return row.Raw{}
		}
		initial = "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(initial) + "'"
	}
	return row.Raw{Text: initial, OK: literal.MatchString(initial)}
}

// spell is an expression for the text of a default. A BIT is a number to us.
func spell(c row.Column, text string) string {
	if c.Kind == row.KindInteger {
		return "CAST(" + text + " + 0 AS CHAR)"
	}
	return text
}

// exact reports whether texts are equal to a collation only if their bytes are. One
// that pads takes "a" and "a " for equal; a padded column keeps no such text.
func exact(collation string, padded bool) bool {
	unpadded := strings.Contains(collation, "nopad") || collation == "utf8mb4_0900_bin"
	return collation == "binary" || strings.HasSuffix(collation, "_bin") && (unpadded || padded)
}

// exactDefinition is the column's definition with a collation that is exact; MySQL has only
// one such that pads not, MariaDB one for each character set.
func exactDefinition(c row.Column, charset string, mariadb bool) string {
	collation := charset + "_nopad_bin"
	if !mariadb {
		charset, collation = "utf8mb4", "utf8mb4_0900_bin"
	}
	definition := fmt.Sprintf("MODIFY %s %s CHARACTER SET %s COLLATE %s", quote.Ident(c.Name), c.DBType, charset, collation)
	if !c.Nullable {
		definition += " NOT NULL"
	}
	return definition
}

// listed are the values of an ENUM or SET, and the form of the texts that it keeps unchanged: for an
// ENUM "1" means its first value.
func listed(full string, several bool) (values []string, form string) {
	_, list, _ := strings.Cut(full, "(")
	var quoted []string
	for _, part := range listedValue.FindAllString(list, -1) {
		value := strings.ReplaceAll(part[1:len(part)-1], "''", "'")
		values, quoted = append(values, value), append(quoted, regexp.QuoteMeta(value))
	}
	form = "(" + strings.Join(quoted, "|") + ")"
	if several {
		form = "(" + form + "(," + form + ")*)?"
	}
	return values, form
}

// formOf is the form of the texts that these types keep. To a YEAR 24 is 2024, to a
// TIME "100" is a minute.
func formOf(data string, fraction int) string {
	switch data {
	case "year":
		return `\d{4}`
	case "time":
		return fmt.Sprintf(`-?\d+:\d\d(:\d\d(\.\d{0,%d}0*)?)?`, fraction)
	}
	return ""
}

// listedValue is one value in the text of an ENUM or SET.
var listedValue = regexp.MustCompile("'(?:[^']|'')*'")
