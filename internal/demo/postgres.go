package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// openPostgres creates a schema for the run.
func openPostgres(ctx context.Context, dsn, name string) (*database, error) {
	config, err := pgx.ParseConfig(dsn)
	u, urlErr := url.Parse(dsn)
	if err != nil || urlErr != nil {
		return nil, errors.New("the DSN cannot be read: write postgres://user:password@host:5432/database")
	}
	admin := stdlib.OpenDB(*config)
	defer admin.Close()
	if err := admin.PingContext(ctx); err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	const list = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
	borrowed, err := own(ctx, admin, "schema", "CREATE SCHEMA "+name, "SELECT count(*) FROM ("+list+") t", func(err error) bool {
		var e *pgconn.PgError
		return errors.As(err, &e) && e.Code == "42501" // insufficient_privilege
	})
	if err != nil {
		return nil, err
	}
	d := &database{driver: "postgres", dsn: dsn, what: fmt.Sprintf("PostgreSQL, %s:%d", config.Host, config.Port)}
	if borrowed {
		d.DB = stdlib.OpenDB(*config)
		d.drop = func(ctx context.Context) error { return dropTables(ctx, d.DB, list) }
		return d, nil
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	d.dsn = u.String()
	config.RuntimeParams["search_path"] = name
	d.DB = stdlib.OpenDB(*config)
	d.what += ", schema " + name
	d.drop = dropper(d.DB, "DROP SCHEMA "+name+" CASCADE")
	return d, nil
}

// dropper returns a function that removes the schema or database that the run has created.
func dropper(db *sql.DB, text string) func(context.Context) error {
	return func(ctx context.Context) error {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		return nil
	}
}
