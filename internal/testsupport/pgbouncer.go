package testsupport

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// StartPooled is Pooled with a PostgreSQL of this test alone.
func StartPooled(t testing.TB) *Database {
	t.Helper()
	return StartPostgres(t).behind(t, "transaction")
}

// Pooler is the PgBouncer before a database of Pooled or StartPooled.
func (db *Database) Pooler() *Pooler { return db.pooler }

// behind is the same database with the address of a PgBouncer.
func (db *Database) behind(t testing.TB, mode string) *Database {
	t.Helper()
	d, err := runPgBouncer(db.DSN, mode)
	if err != nil {
		t.Fatalf("start a PgBouncer for this test: %v", err)
	}
	newServer(t, d.Daemon)
	behind := *db
	behind.pooler = d
	behind.DSN = db.server.engine.dsn(d.Addr(), db.name)
	return &behind
}

// Pooler is a PgBouncer whose settings can be changed.
type Pooler struct {
	*Daemon
	ini string // path of the file of settings, without its port

	mu       sync.Mutex
	settings map[string]string
}

// Set changes a setting of a PgBouncer that runs, or is started again later.
func (p *Pooler) Set(name, value string) error {
	p.mu.Lock()
	p.settings[name] = value
	p.mu.Unlock()
	if err := p.write(p.port); err != nil {
		return err
	}
	p.Daemon.mu.Lock()
	defer p.Daemon.mu.Unlock()
	return p.proc.Signal(syscall.SIGHUP)
}

// write writes the file of settings. PgBouncer reads a file whole when it is told to.
func (p *Pooler) write(port int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "[databases]\n* = host=127.0.0.1 port=%s\n[pgbouncer]\nlisten_port = %d\n", p.settings[serverPort], port)
	for _, name := range slices.Sorted(maps.Keys(p.settings)) {
		if name != serverPort {
			fmt.Fprintf(&text, "%s = %s\n", name, p.settings[name])
		}
	}
	return os.WriteFile(p.ini+strconv.Itoa(port), []byte(text.String()), 0o644)
}

// serverPort is the port of the PostgreSQL among the settings.
const serverPort = "port"

func runPgBouncer(dsn, mode string) (*Pooler, error) {
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
	users := filepath.Join(dir, "users")
	if err := os.WriteFile(users, []byte(`"app" ""`+"\n"), 0o644); err != nil {
		return nil, sd.Fail(err)
	}
	p := &Pooler{Daemon: &Daemon{name: "pgbouncer", dir: sd, cred: cred, stop: syscall.SIGINT}, ini: filepath.Join(dir, "pgbouncer.ini")}
	p.settings = map[string]string{
		serverPort: server.Port(), "listen_addr": "127.0.0.1", "unix_socket_dir": "", "auth_type": "trust", "auth_file": users, "pool_mode": mode,
		"admin_users": "app",
		// Two transactions in a row have different sessions of the server.
		"server_round_robin": "1", "min_pool_size": "3", "default_pool_size": "12",
	}
	p.before = p.write
	p.argv = func(port int) []string { return []string{program, "--quiet", p.ini + strconv.Itoa(port)} }
	p.ready = func(ctx context.Context, d *Daemon) error { return answers(ctx, d.Addr()) }
	if err := p.start(); err != nil {
		return nil, sd.Fail(err)
	}
	return p, nil
}

// answers asks the PgBouncer at an address itself: the PostgreSQL may be down.
func answers(ctx context.Context, addr string) error {
	db, err := sql.Open("pgx", "postgres://app@"+addr+"/pgbouncer?sslmode=disable&default_query_exec_mode=simple_protocol")
	if err != nil {
		return err
	}
	defer db.Close()
	var version string
	return db.QueryRowContext(ctx, "SHOW VERSION").Scan(&version)
}
