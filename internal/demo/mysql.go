package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// openMySQL makes a database for the run.
func openMySQL(ctx context.Context, dsn, name string) (*database, error) {
	config, err := parseMySQL(dsn)
	if err != nil {
		return nil, errors.New("the DSN cannot be read: " +
			"write user:password@tcp(host:3306)/database or mysql://user:password@host:3306/database")
	}
	config.Logger = &mysql.NopLogger{} // errors need no log, because they are also returned
	admin, err := connectMySQL(config)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	if err := admin.PingContext(ctx); err != nil {
		return nil, fmt.Errorf("connect to MySQL or MariaDB: %w", err)
	}
	const list = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
	borrowed, err := own(ctx, admin, "database", "CREATE DATABASE "+name, "SELECT count(*) FROM ("+list+") t", func(err error) bool {
		var e *mysql.MySQLError
		return errors.As(err, &e) && (e.Number == 1044 || e.Number == 1227) // access denied
	})
	if err != nil {
		return nil, err
	}
	d := &database{driver: "mysql", what: "MySQL/MariaDB, " + config.Addr}
	if borrowed && config.DBName == "" {
		return nil, errors.New("this user may not create a database for the demo: grant CREATE, or name an empty database")
	}
	if !borrowed {
		config.DBName = name
	}
	d.dsn = config.FormatDSN()
	d.what += ", database " + config.DBName
	if d.DB, err = connectMySQL(config); err != nil {
		return nil, err
	}
	d.drop = dropper(d.DB, "DROP DATABASE "+name)
	if borrowed {
		d.drop = func(ctx context.Context) error { return dropTables(ctx, d.DB, list) }
	}
	return d, nil
}

func connectMySQL(config *mysql.Config) (*sql.DB, error) {
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, errors.New("the DSN cannot be used: write user:password@tcp(host:3306)/database")
	}
	return sql.OpenDB(connector), nil
}

// parseMySQL parses a DSN that is a URL or has the form of the Go driver.
func parseMySQL(dsn string) (*mysql.Config, error) {
	scheme, _, isURL := strings.Cut(dsn, "://")
	if !isURL || scheme != "mysql" && scheme != "mariadb" {
		return mysql.ParseDSN(dsn)
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	config := mysql.NewConfig()
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Net, config.Addr = "tcp", u.Host
	if u.Port() == "" {
		config.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	config.DBName = strings.Trim(u.Path, "/")
	if u.RawQuery == "" {
		return config, nil
	}
	// The driver itself parses the parameters.
	return mysql.ParseDSN(config.FormatDSN() + "&" + u.RawQuery)
}
