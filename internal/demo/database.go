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

// database is the SQL database of one run. Each run has its own SQLite file, or its own schema or database on a server. It contains the
// tables into which the nodes flush.
type database struct {
	*sql.DB
	driver string // name of the driver in baton's configuration
	dsn    string // for the nodes; may contain a password
	what   string // description for people; never contains a password
	drop   func(ctx context.Context) error
}

// openDatabase creates a SQLite file in dir. If the argument dsn is set, it instead creates a schema or database on the DSN's server, with
// the name in the argument name.
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

// beside creates the table of the naive program. In SQLite this table is in a separate file. Otherwise a frozen process could lock the file
// that the nodes use.
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

// options returns the text that a CREATE TABLE statement of this database ends with.
func (d *database) options() string {
	if d.driver != "mysql" {
		return ""
	}
	// As in a table that baton creates, two ids are equal only if their bytes are equal.
	return " CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */"
}

// createTables creates the tables. It never uses IF NOT EXISTS, because existing tables do not belong to the demo.
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
	// The nodes write at the same time; in WAL mode a reader does not wait for them.
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	return &database{
		DB: db, driver: "sqlite", dsn: path, what: "SQLite, " + path,
		drop: func(context.Context) error { return nil }, // the file is removed together with its directory
	}, nil
}

// own executes the argument create, which is a statement that creates a schema or database for the demo. If this user may not do that, the
// demo uses the database of the DSN, and the result borrowed is true. This is only allowed if that database has no tables, so that the demo
// can harm none.
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
		return false, fmt.Errorf("this user may not create a %s for the demo, and the DSN names one that already has %d tables: "+
			"grant CREATE, or name an empty %s", what, tables, what)
	}
	return true, nil
}

// dropTables removes the tables of the demo, and baton's own tables, from a database that the demo has not created.
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
	for _, name := range names { // all of these names are plain words
		_, err := db.ExecContext(ctx, "DROP TABLE "+name)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
