package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"baton/internal/flush"
)

func (p *postgres) table(ctx context.Context, name string) (flush.Table, error) {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return flush.Table{}, err
	}
	defer conn.Release()
	q := p.store.queries
	var oid int64
	var kind string
	t := flush.Table{}
	err = conn.QueryRow(ctx, q["table"], name).Scan(&oid, &t.Name, &kind, &t.UpsertOnly)
	var syntax *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows),
		errors.As(err, &syntax) && (syntax.Code[:2] == "42" || syntax.Code[:2] == "0A"): // not even a name
		return t, p.noTable(ctx, conn.Conn(), name)
	case err != nil:
		return t, err
	case kind != "r" && kind != "p":
		return t, fmt.Errorf("%w: %s is not a table (a view, a sequence or a foreign table cannot be flushed into)", flush.ErrNoTable, t.Name)
	}
	rows, err := conn.Query(ctx, q["columns"], oid)
	if err != nil {
		return t, err
	}
	if t.Columns, err = pgx.CollectRows(rows, pgCatalogueColumn); err != nil {
		return t, err
	}
	if rows, err = conn.Query(ctx, q["unique"], oid); err != nil {
		return t, err
	}
	t.Unique, err = pgx.CollectRows(rows, pgx.RowTo[[]string])
	return t, err
}

func (p *postgres) noTable(ctx context.Context, conn *pgx.Conn, name string) error {
	rows, err := conn.Query(ctx, p.store.queries["table_names"])
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	return noTable(name, names)
}

// noTable says what was not found, and what may have been meant.
func noTable(name string, names []string) error {
	hint := "create it, or correct the job's `table`"
	if near := similar(name, names); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %s?", near[0])
	}
	return fmt.Errorf("%w: %q: %s", flush.ErrNoTable, name, hint)
}

func pgCatalogueColumn(row pgx.CollectableRow) (flush.Column, error) {
	var c flush.Column
	var native string // name of a type of PostgreSQL's own; "" for others, such as enums
	var modifier int32
	err := row.Scan(&c.Name, &native, &c.DBType, &modifier, &c.Nullable, &c.Default, &c.Generated)
	switch native {
	case "int2", "int4", "int8":
		c.Kind, c.Bits = flush.KindInteger, 8*int(native[3]-'0')
	case "float4", "float8":
		c.Kind, c.Bits = flush.KindFloat, 8*int(native[5]-'0')
	case "numeric":
		c.Kind = flush.KindNumeric
		if modifier >= 4 {
			c.Precision = int((modifier - 4) >> 16 & 0xffff)
			c.Scale = int((modifier-4)&0x7ff^1024) - 1024 // eleven bits with a sign
		}
	case "text":
		c.Kind = flush.KindText
	case "varchar", "bpchar":
		c.Kind, c.MaxChars, c.Padded = flush.KindText, int(max(0, modifier-4)), native == "bpchar"
	case "bytea":
		c.Kind = flush.KindBytes
	case "bool":
		c.Kind = flush.KindBoolean
	case "timestamp", "timestamptz":
		c.Kind = flush.KindTimestamp
		c.TimeUnit = timeUnit(int(modifier))
	case "date":
		c.Kind = flush.KindDate
	case "json", "jsonb":
		c.Kind = flush.KindJSON
	case "uuid":
		c.Kind = flush.KindUUID
	case "bit":
		// A cast to bit is a cast to bit(1), which cuts.
		c.Kind, c.DBType = flush.KindOther, "bit varying"
	case "time", "timetz", "interval":
		c.Kind = flush.KindOther
		// The lower half of an interval's modifier is its digits; 0xffff: all six.
		if digits := int(modifier & 0xffff); modifier >= 0 && digits < 6 {
			c.Form = fmt.Sprintf(`[^.]*(\.\d{0,%d}0*(\D.*)?)?`, digits)
		}
	case "name":
		c.Kind, c.MaxBytes = flush.KindOther, 63
	case "char":
		c.Kind, c.MaxBytes = flush.KindOther, 1
	default:
		c.Kind = flush.KindOther
	}
	return c, err
}

// timeUnit is the step of a time with so many digits after the second; a
// microsecond if digits is none of 0 to 5.
func timeUnit(digits int) time.Duration {
	if digits < 0 || digits > 5 {
		return time.Microsecond
	}
	unit := time.Second
	for range digits {
		unit /= 10
	}
	return unit
}
