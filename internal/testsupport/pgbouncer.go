package testsupport

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// PgBouncer is the DSN of a PostgreSQL database by way of a PgBouncer of this test. It takes turns
// with its connections to the server: two transactions in a row have different ones. mode is its
// pool_mode.
func PgBouncer(t testing.TB, db *Database, mode string) string {
	t.Helper()
	return db.behind(t, mode).DSN
}

// Pooled is an empty database of a PostgreSQL behind a PgBouncer in transaction mode. The test's own
// statements go past the PgBouncer.
func Pooled(t testing.TB) *Database {
	t.Helper()
	return Postgres(t).behind(t, "transaction")
}

// behind is the same database with the address of a PgBouncer.
func (db *Database) behind(t testing.TB, mode string) *Database {
	t.Helper()
	d, err := runPgBouncer(db.DSN, mode)
	if err != nil {
		t.Fatalf("start a PgBouncer for this test: %v", err)
	}
	newServer(t, d)
	behind := *db
	behind.pooler = d
	behind.DSN = db.server.engine.dsn(d.Addr(), db.name)
	return &behind
}

func replaceHost(dsn, host string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", err
	}
	u.Host = host
	return u.String(), nil
}

func runPgBouncer(dsn, mode string) (*Daemon, error) {
	program, err := lookProgram("pgbouncer")
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	cred, err := credentialOf("postgres") // it refuses to run as root
	if err != nil {
		return nil, err
	}
	sd, err := newServerDir("", "pgbouncer")
	if err != nil {
		return nil, err
	}
	dir, err := sd.Owned("conf", cred)
	if err != nil {
		return nil, sd.Fail(err)
	}
	users, ini := filepath.Join(dir, "users"), filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(users, []byte(`"app" ""`+"\n"), 0o644); err != nil {
		return nil, sd.Fail(err)
	}
	config := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nunix_socket_dir =\n"+
		"auth_type = trust\nauth_file = %s\npool_mode = %s\nserver_round_robin = 1\nmin_pool_size = 3\ndefault_pool_size = 12\n",
		server.Port(), users, mode)
	d := &Daemon{name: "pgbouncer", dir: sd, cred: cred, stop: syscall.SIGINT}
	d.argv = func(port int) []string { return []string{program, "--quiet", ini + strconv.Itoa(port)} }
	d.ready = func(ctx context.Context, d *Daemon) error {
		through, err := replaceHost(dsn, d.Addr())
		if err != nil {
			return err
		}
		db, err := sql.Open("pgx", through+"&default_query_exec_mode=simple_protocol")
		if err != nil {
			return err
		}
		defer db.Close()
		var one int
		return db.QueryRowContext(ctx, "SELECT 1").Scan(&one)
	}
	d.before = func(port int) error {
		return os.WriteFile(ini+strconv.Itoa(port), fmt.Appendf(nil, "%slisten_port = %d\n", config, port), 0o644)
	}
	if err := d.start(); err != nil {
		return nil, sd.Fail(err)
	}
	return d, nil
}
