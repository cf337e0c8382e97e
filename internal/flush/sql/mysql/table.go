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
		return row.Table{}, fmt.Errorf("%w: %s is a %s, but baton can write only to tables", flush.ErrNoTable, name, strings.ToLower(kind))
	case transactional != "YES":
		return row.Table{}, fmt.Errorf("table %s has engine %s, which has no transactions, so nothing could be rolled back: ALTER TABLE "+
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

// identity returns a text that distinguishes a table from another table of the same name.
func (d database) identity(ctx context.Context, schema, table, created string) (string, error) {
	if d.Certified() {
		return "", nil // each server of a cluster has created the table at another time
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

// hidesIDs lists the errors of a server that does not show the ids of tables, because the right PROCESS or the table of the ids is missing.
var hidesIDs = []uint16{1227, unknownTable, 1146}

const unknownTable = 1109 // unknown table in information_schema

func columnOf(scan func(...any) error) (row.Column, error) {
	var c row.Column
	var data string
	var chars, octets uint64 // a LONGTEXT has 4 GiB
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
		if c.DBType == "tinyint(1)" { // BOOLEAN is a synonym for tinyint(1)
			c.Kind, c.Bits = row.KindBoolean, 0
		}
	case "bit": // baton treats it as a number; the server refuses a number with more bits
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
	case "json": // the type of MySQL; in MariaDB JSON is a text
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

// constant returns the default of a column as an SQL literal. MariaDB shows the literal in the form of SQL; MySQL shows a text without its
// quotes. The query does not return defaults of MySQL that are expressions.
func constant(c *row.Column, shown dbsql.NullString, mariadb bool) row.Raw {
	if !c.Default || c.Generated || !shown.Valid {
		return row.Raw{}
	}
	initial := shown.String
	if !mariadb && !literal.MatchString(initial) {
		if c.Kind == row.KindTimestamp && strings.HasPrefix(initial, "CURRENT_TIMESTAMP") { // MySQL 5.7 shows it so
			return row.Raw{}
		}
		initial = "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(initial) + "'"
	}
	return row.Raw{Text: initial, OK: literal.MatchString(initial)}
}

// spell returns an SQL expression for the text of a column's default. The value of a BIT column is a number for baton.
func spell(c row.Column, text string) string {
	if c.Kind == row.KindInteger {
		return "CAST(" + text + " + 0 AS CHAR)"
	}
	return text
}

// exact reports whether a collation treats texts as equal only if their bytes are equal. A collation that pads treats "a" and "a " as
// equal, but a column whose texts are padded never contains "a ".
func exact(collation string, padded bool) bool {
	unpadded := strings.Contains(collation, "nopad") || collation == "utf8mb4_0900_bin"
	return collation == "binary" || strings.HasSuffix(collation, "_bin") && (unpadded || padded)
}

// exactDefinition returns the column's definition with an exact collation. Among collations that do not pad, MySQL has only one that is
// exact, and MariaDB has one for each character set.
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

// listed returns the values of an ENUM or SET, and the form of the texts that the type stores unchanged. In an ENUM, for example, "1" means
// the first value.
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

// formOf returns the form of the texts that a column of type YEAR or TIME stores unchanged. For example, a YEAR stores "24" as 2024, and a
// TIME stores "100" as one minute.
func formOf(data string, fraction int) string {
	switch data {
	case "year":
		return `\d{4}`
	case "time":
		return fmt.Sprintf(`-?\d+:\d\d(:\d\d(\.\d{0,%d}0*)?)?`, fraction)
	}
	return ""
}

// listedValue matches one value in the text of an ENUM or SET.
var listedValue = regexp.MustCompile("'(?:[^']|'')*'")
