package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // driver "sqlite"
)

// database is the SQL database of one run: a place of its own, with the tables that the nodes flush into.
type database struct {
	*sql.DB
	driver string // as in baton's configuration
	dsn    string // for the nodes; may hold a password
	what   string // for people; never a password
	drop   func(ctx context.Context) error
}

// openDatabase makes a SQLite file in dir, or a place of its own called name in
// the database that the DSN names.
func openDatabase(ctx context.Context, dsn, dir, name string) (*database, error) {
	var d *database
	var err error
	switch databaseOf(dsn) {
	case "postgres":
		d, err = openPostgres(ctx, dsn, name)
	case "mysql":
		d, err = openMySQL(ctx, dsn, name)
	default:
		d, err = openSQLite(filepath.Join(dir, "demo.db"))
	}
	if err != nil {
		return nil, fmt.Errorf("--database: %w", err)
	}
	if err := d.createTables(ctx); err != nil {
		ctx, cancel := uninterrupted(ctx)
		defer cancel()
		return nil, errors.Join(err, d.close(ctx))
	}
	return d, nil
}

// beside makes the table of the naive program: in a SQLite file of its own, since a frozen process keeps such a file locked.
func (d *database) beside(ctx context.Context, dir string) (*database, error) {
	b := *d
	if d.driver == "sqlite" {
		o, err := openSQLite(filepath.Join(dir, "naive.db"))
		if err != nil {
			return nil, err
		}
		b = *o
	}
	_, err := b.ExecContext(ctx, "CREATE TABLE "+naiveTable+" (id varchar(40) NOT NULL PRIMARY KEY, views bigint NOT NULL)"+b.options())
	if err != nil {
		return nil, fmt.Errorf("create the naive program's table: %w", err)
	}
	return &b, nil
}

// options end a statement that creates a table.
func (d *database) options() string {
	if d.driver != "mysql" {
		return ""
	}
	// As for a table that baton makes: an id is its bytes.
	return " CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */"
}

// createTables never says IF NOT EXISTS: existing tables are not ours.
func (d *database) createTables(ctx context.Context) error {
	for _, text := range []string{
		"CREATE TABLE articles (id varchar(40) NOT NULL PRIMARY KEY, views bigint NOT NULL)" + d.options(),
		"CREATE TABLE users (id bigint NOT NULL PRIMARY KEY, name varchar(100) NOT NULL, note varchar(200), " +
			"version bigint NOT NULL)" + d.options(),
	} {
		if _, err := d.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("create the demo's tables: %w", err)
		}
	}
	return nil
}

// close removes everything that the run made in the database.
func (d *database) close(ctx context.Context) error {
	return errors.Join(d.drop(ctx), d.DB.Close())
}

func openSQLite(path string) (*database, error) {
	// The nodes write beside us; a reader in WAL mode does not wait.
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	return &database{
		DB: db, driver: "sqlite", dsn: path, what: "SQLite, " + path,
		drop: func(context.Context) error { return nil }, // the directory goes
	}, nil
}

// own makes a place called name with create. If this user may not do that, it falls back on the place that the DSN names, provided that
// the demo can harm no table there. borrowed reports the fallback.
func own(ctx context.Context, db *sql.DB, what, create, countTables string, denied func(error) bool) (borrowed bool, err error) {
	whole, cancel := uninterrupted(ctx)
	defer cancel()
	_, err = db.ExecContext(whole, create)
	if err == nil || !denied(err) {
		return false, err
	}
	var tables int
	if err := db.QueryRowContext(ctx, countTables).Scan(&tables); err != nil {
		return false, err
	}
	if tables > 0 {
		return false, fmt.Errorf("this user may not create a %s for the demo, and the one that the DSN names has %d tables in it: "+
			"grant CREATE, or name an empty %s", what, tables, what)
	}
	return true, nil
}

// dropTables removes our tables, and those of the nodes, from a borrowed place.
func dropTables(ctx context.Context, db *sql.DB, list string) error {
	rows, err := db.QueryContext(ctx, list)
	if err != nil {
		return err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		if name == "articles" || name == "users" || name == naiveTable || strings.HasPrefix(name, "baton_") {
			names = append(names, name)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	var problems []error
	for _, name := range names { // which are all plain words
		_, err := db.ExecContext(ctx, "DROP TABLE "+name)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
