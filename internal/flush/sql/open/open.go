// Package open contains the registry of dialects, and opens a database with a dialect.
package open

import (
	"fmt"

	"baton/internal/flush/sql"
	"baton/internal/flush/sql/mysql"
	"baton/internal/flush/sql/postgres"
	"baton/internal/flush/sql/sqlite"
)

// dialects maps the names in the configuration to dialects.
var dialects = map[string]func() *sql.Dialect{
	"postgres": postgres.Dialect, "mysql": mysql.Dialect, "mariadb": mysql.Dialect, "sqlite": sqlite.Dialect,
}

// Dialect returns a dialect by the name that the configuration uses for it.
func Dialect(driver string) (*sql.Dialect, error) {
	d := dialects[driver]
	if d == nil {
		return nil, fmt.Errorf("driver %q is not known: use postgres, mysql, mariadb or sqlite", driver)
	}
	return d(), nil
}

// Database opens a database of a driver. Like sql.New, it does not connect.
func Database(driver string, o sql.Options) (*sql.Store, error) {
	d, err := Dialect(driver)
	if err == nil {
		err = foreign(driver, d.Form, o.DSN)
	}
	if err != nil {
		return nil, fmt.Errorf("database %q: %w", o.Name, err)
	}
	return sql.New(d, o)
}
