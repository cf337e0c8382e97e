package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

func (p *postgres) Table(ctx context.Context, name string) (t row.Table, err error) {
	err = p.within(ctx, func(tx pgx.Tx) error {
		t, err = p.table(ctx, tx, name)
		return err
	})
	return t, err
}

func (p *postgres) table(ctx context.Context, tx pgx.Tx, name string) (row.Table, error) {
	q := p.queries
	var oid int64
	var kind string
	t := row.Table{}
	find, err := tx.Begin(ctx) // a savepoint, because a text that is no name causes an error
	if err != nil {
		return t, err
	}
	err = find.QueryRow(ctx, q["table"], quote.Table(name)).Scan(&oid, &t.Name, &kind, &t.UpsertOnly, &t.Identity)
	var syntax *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows), errors.As(err, &syntax) && slices.Contains(noNames, syntax.Code):
		if err := find.Rollback(ctx); err != nil {
			return t, err
		}
		return t, p.noTable(ctx, tx, name)
	case err != nil:
		return t, err
	case kind != "r" && kind != "p":
		return t, fmt.Errorf("%w: %s is not a table (baton cannot write to a view, a sequence or a foreign table)", flush.ErrNoTable,
			t.Name)
	}
	rows, err := tx.Query(ctx, q["columns"], oid)
	if err != nil {
		return t, err
	}
	if t.Columns, err = pgx.CollectRows(rows, catalogueColumn); err != nil {
		return t, err
	}
	if err := evaluate(ctx, tx, t.Columns); err != nil {
		return t, err
	}
	for i := range t.Columns {
		if c := &t.Columns[i]; c.Folds != "" {
			c.Exact = fmt.Sprintf(`ALTER TABLE %s ALTER COLUMN %s TYPE text COLLATE "C"`, t.Name, quote.Ident(c.Name))
		}
	}
	if rows, err = tx.Query(ctx, q["unique"], oid); err != nil {
		return t, err
	}
	t.Unique, err = pgx.CollectRows(rows, pgx.RowTo[[]string])
	return t, err
}

// noNames lists the SQLSTATEs for a text that is not the name of a table of this database: a syntax error, an invalid name, or a name in
// another database. Any other error, such as an error about a schema that this user may not use, does not say whether the table exists.
var noNames = []string{"42601", "42602", "0A000"}

// spellings maps types to SQL functions. A function converts a value to a text that a column of its type accepts whatever the session's
// settings are.
var spellings = map[string]string{
	"bytea": "encode(%s, 'hex')", "date": "to_char(%s, 'YYYY-MM-DD')", "timestamp": `to_char(%s, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`,
	"timestamptz": `to_char(%s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`,
}

// evaluate replaces the expressions of constant defaults by their values. If the database cannot evaluate a default, the column is treated
// as if it had none.
func evaluate(ctx context.Context, tx pgx.Tx, columns []row.Column) error {
	var expressions []string
	for _, c := range columns {
		if c.Constant.OK {
			expressions = append(expressions, c.Constant.Text)
		}
	}
	if len(expressions) == 0 {
		return nil
	}
	texts, err := valuesOf(ctx, tx, expressions)
	if err != nil {
		return err
	}
	for i := range columns {
		c := &columns[i]
		if !c.Constant.OK {
			continue
		}
		text := texts[0]
		texts = texts[1:]
		if c.Constant = (row.Raw{}); text == nil {
			continue
		}
		c.Constant = row.Raw{Text: *text, OK: true}
		if c.Kind == row.KindBytes {
			raw, err := hex.DecodeString(*text)
			c.Constant = row.Raw{Text: string(raw), OK: err == nil}
		}
	}
	return nil
}

// valuesOf evaluates the expressions and returns each value as text. The text is nil if the database could not compute the value, such as a
// division by zero.
func valuesOf(ctx context.Context, tx pgx.Tx, expressions []string) (texts []*string, err error) {
	try, err := tx.Begin(ctx) // begins a savepoint
	if err != nil {
		return nil, err
	}
	err = try.QueryRow(ctx, "SELECT ARRAY["+strings.Join(expressions, ", ")+"]").Scan(&texts)
	var refused *pgconn.PgError
	if err == nil {
		return texts, try.Commit(ctx)
	}
	if !errors.As(err, &refused) || refused.Code[:2] != "22" { // such as a division by zero
		return nil, err
	}
	if err := try.Rollback(ctx); err != nil || len(expressions) == 1 {
		return []*string{nil}, err
	}
	for i := range expressions {
		one, err := valuesOf(ctx, tx, expressions[i:i+1])
		if err != nil {
			return nil, err
		}
		texts = append(texts, one...)
	}
	return texts, nil
}

func (p *postgres) noTable(ctx context.Context, tx pgx.Tx, name string) error {
	rows, err := tx.Query(ctx, p.queries["table_names"])
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	return sql.NoTable(name, names)
}

func catalogueColumn(r pgx.CollectableRow) (row.Column, error) {
	var c row.Column
	var native string // name of a built-in type of PostgreSQL; "" for other types, such as enums
	var modifier int32
	var constant *string
	err := r.Scan(&c.Name, &native, &c.DBType, &modifier, &c.Nullable, &c.Default, &c.Generated, &c.Allow, &constant, &c.Folds, &c.Values,
		&c.Checks)
	if constant != nil {
		spelling, ok := spellings[native]
		if !ok {
			spelling = "(%s)::text"
		}
		c.Constant = row.Raw{Text: fmt.Sprintf(spelling, *constant), OK: true}
	}
	switch native {
	case "int2", "int4", "int8":
		c.Kind, c.Bits = row.KindInteger, 8*int(native[3]-'0')
	case "float4", "float8":
		c.Kind, c.Bits = row.KindFloat, 8*int(native[5]-'0')
	case "numeric":
		c.Kind = row.KindNumeric
		if modifier >= 4 {
			c.Precision = int((modifier - 4) >> 16 & 0xffff)
			c.Scale = int((modifier-4)&0x7ff^1024) - 1024 // the scale has eleven bits with a sign
		}
	case "text":
		c.Kind = row.KindText
	case "varchar", "bpchar":
		c.Kind, c.MaxChars, c.Padded = row.KindText, int(max(0, modifier-4)), native == "bpchar"
	case "bytea":
		c.Kind = row.KindBytes
	case "bool":
		c.Kind = row.KindBoolean
	case "timestamp", "timestamptz":
		c.Kind = row.KindTimestamp
		c.TimeUnit = sql.TimeUnit(int(modifier))
	case "date":
		c.Kind = row.KindDate
	case "json", "jsonb":
		c.Kind, c.LastMember = row.KindJSON, native == "jsonb"
	case "uuid":
		c.Kind = row.KindUUID
	case "bit":
		// A cast to "bit" means bit(1), which would cut the value.
		c.Kind, c.DBType = row.KindOther, "bit varying"
	case "time", "timetz", "interval":
		c.Kind = row.KindOther
		// The lower 16 bits of an interval's modifier are its number of digits; 0xffff means all six.
		if digits := int(modifier & 0xffff); modifier >= 0 && digits < 6 {
			c.Form = fmt.Sprintf(`[^.]*(\.\d{0,%d}0*(\D.*)?)?`, digits)
		}
	case "money": // rounds; the server's lc_monetary decides how many digits it keeps
		c.Kind, c.Form = row.KindOther, `[^.]*(\.\d{0,2}0*\D*)?`
	case "oid", "xid", "cid": // a negative number wraps around to a large one
		c.Kind, c.Form = row.KindOther, `\d+`
	case "name":
		c.Kind, c.MaxBytes = row.KindOther, 63
	case "char":
		c.Kind, c.MaxBytes = row.KindOther, 1
	default:
		c.Kind = row.KindOther // only the server knows the values of an enumerated type, because it may have new ones
	}
	return c, err
}
