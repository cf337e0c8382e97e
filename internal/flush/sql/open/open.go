// Package open has the registry of dialects, and opens a database of one.
package open

import (
	"fmt"

	"baton/internal/flush/sql"
	"baton/internal/flush/sql/mysql"
	"baton/internal/flush/sql/postgres"
	"baton/internal/flush/sql/sqlite"
)

// dialects are all dialects by their names in the configuration.
var dialects = map[string]func() *sql.Dialect{
	"postgres": postgres.Dialect, "mysql": mysql.Dialect, "mariadb": mysql.Dialect, "sqlite": sqlite.Dialect,
}

// Dialect finds a dialect by its name in the configuration.
func Dialect(driver string) (*sql.Dialect, error) {
	d := dialects[driver]
	if d == nil {
		return nil, fmt.Errorf("driver %q is not known: use postgres, mysql, mariadb or sqlite", driver)
	}
	return d(), nil
}

// Database opens a database of such a driver. It does not connect: see sql.New.
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
