package testsupport

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// MariaDB returns an empty database on the MariaDB that all tests of this process share. The user "app" of the server has every right.
func MariaDB(t testing.TB) *Database {
	t.Helper()
	return shared.mariadb(t).database(t)
}

// StartMariaDB returns an empty database on a MariaDB of this test alone.
func StartMariaDB(t testing.TB) *Database {
	t.Helper()
	return private(t, RunMariaDB)
}

// RunMariaDB starts a MariaDB with its files below dir, or below the system's
// temporary directory if dir is empty. The caller stops it.
func RunMariaDB(dir string) (*SQLDaemon, error) { return RunMariaDBWith(dir) }

// RunMariaDBWith is like RunMariaDB, but with further options of the server, such as "--innodb-buffer-pool-size=256M". The further options
// override the options that this package sets.
func RunMariaDBWith(dir string, options ...string) (*SQLDaemon, error) {
	return runMariaDB(dir, mariaDB{options: func() []string { return options }, ready: pingMariaDB})
}

// mariaDB contains the differences between the servers that runMariaDB starts.
type mariaDB struct {
	options func() []string                                // called at each start
	ready   func(ctx context.Context, socket string) error // returns nil when the server may be used
	empty   bool                                           // the server starts without data and users
}

func runMariaDB(dir string, m mariaDB) (*SQLDaemon, error) {
	f, err := flavourOf(dialect())
	if err != nil {
		return nil, err
	}
	cred, err := credentialOf("mysql")
	if err != nil {
		return nil, err
	}
	sd, err := newServerDir(dir, "mariadb")
	if err != nil {
		return nil, err
	}
	data, err := sd.Data(cred)
	if err != nil {
		return nil, sd.Fail(err)
	}
	// When a server starts, it removes all temporary tables from its temporary directory, also the tables of another server.
	temporary, err := sd.Owned("tmp", cred)
	if err != nil {
		return nil, sd.Fail(err)
	}
	if !m.empty {
		err = fillData("mariadb", data, cred, func(dir string) error { return run(f.install(dir, temporary), dir, cred) })
		if err != nil {
			return nil, sd.Fail(fmt.Errorf("make a MariaDB data directory: %w", err))
		}
	}
	socket := filepath.Join(data, "s.sock")
	d := &Daemon{name: "mariadbd", dir: sd, cred: cred, stop: syscall.SIGKILL}
	d.argv = func(port int) []string {
		common := []string{f.program, "--no-defaults", "--datadir=" + data, "--tmpdir=" + temporary, "--port=" + strconv.Itoa(port),
			"--bind-address=127.0.0.1", "--socket=" + socket, "--pid-file=" + filepath.Join(data, "pid"),
			"--skip-name-resolve", "--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci",
			"--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=64M"}
		return slices.Concat(common, f.options, m.options())
	}
	// The socket is in our own directory, so a server that answers there is our server.
	d.ready = func(ctx context.Context, _ *Daemon) error { return m.ready(ctx, socket) }
	if err := d.start(); err != nil {
		return nil, sd.Fail(err)
	}
	s := &SQLDaemon{Daemon: d, engine: mariadbEngine(socket)}
	if m.empty {
		return s, nil
	}
	if err := s.setUp("CREATE USER app@'%' IDENTIFIED BY 'pw'", "GRANT ALL ON *.* TO app@'%' WITH GRANT OPTION"); err != nil {
		return nil, errors.Join(err, d.Stop())
	}
	return s, nil
}

// flavour describes how to start a MariaDB or a MySQL.
type flavour struct {
	program string
	options []string
	install func(data, temporary string) []string // returns the command that makes the files of an empty server
}

func flavourOf(d Dialect) (f flavour, err error) {
	if d == DialectMySQL {
		f.program, err = lookProgram(os.Getenv(mysqlServerEnv))
		f.options = []string{"--innodb-redo-log-capacity=16M", "--mysqlx=OFF", "--log-error-verbosity=1"}
		f.install = func(data, temporary string) []string {
			return []string{f.program, "--no-defaults", "--initialize-insecure", "--datadir=" + data, "--tmpdir=" + temporary,
				"--innodb-redo-log-capacity=16M"}
		}
		return f, err
	}
	install, err := lookProgram("mariadb-install-db")
	if err != nil {
		return f, err
	}
	f.program, err = lookProgram("mariadbd")
	f.options = []string{"--innodb-log-file-size=16M"}
	f.install = func(data, temporary string) []string {
		return []string{install, "--no-defaults", "--datadir=" + data, "--tmpdir=" + temporary, "--skip-test-db", "--skip-name-resolve",
			"--auth-root-authentication-method=normal", "--innodb-log-file-size=16M"}
	}
	return f, err
}

func mariadbEngine(socket string) engine {
	return engine{
		driver: "mysql",
		dsn:    func(addr, database string) string { return "app:pw@tcp(" + addr + ")/" + database },
		admin:  func() (*sql.DB, error) { return sql.Open("mysql", mariadbAdmin(socket)) },
		open:   openMariaDB,
		create: func(name string) string { return "CREATE DATABASE " + name },
		drop:   dropMariaDB,
	}
}

// openMariaDB opens connections for the test's own statements. The pool allows several connections at a time. The driver does not log that
// a killed server has cut a connection.
func openMariaDB(dsn string) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	cfg.MultiStatements = true
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func mariadbAdmin(socket string) string { return "root@unix(" + socket + ")/?timeout=2s" }

func pingMariaDB(ctx context.Context, socket string) error {
	db, err := sql.Open("mysql", mariadbAdmin(socket))
	if err != nil {
		return err
	}
	defer db.Close()
	return db.PingContext(ctx)
}

// dropMariaDB ends the connections to the database before it drops the database, because DROP would wait for their transactions.
func dropMariaDB(ctx context.Context, c *sql.DB, name string) error {
	processes := "information_schema.processlist"
	if HasDialect(DialectMySQL) { // MySQL's information_schema.processlist fails if a statement contains an emoji
		processes = "performance_schema.processlist"
	}
	ids, err := c.QueryContext(ctx, "SELECT id FROM "+processes+" WHERE db = ?", name)
	if err != nil {
		return err
	}
	defer ids.Close()
	for ids.Next() {
		var id int64
		if err := ids.Scan(&id); err != nil {
			return err
		}
		_, _ = c.ExecContext(ctx, "KILL "+strconv.FormatInt(id, 10)) // the connection may have ended by itself
	}
	if err := ids.Err(); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name)
	return err
}
