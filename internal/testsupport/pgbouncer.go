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

// PgBouncer returns the DSN of a PostgreSQL database behind a PgBouncer of this test. The PgBouncer rotates its connections to the server,
// so that two consecutive transactions use different connections. mode is the PgBouncer's pool_mode.
func PgBouncer(t testing.TB, db *Database, mode string) string {
	t.Helper()
	return db.behind(t, mode).DSN
}

// Pooled returns an empty PostgreSQL database behind a PgBouncer in transaction mode. The test's own statements bypass the PgBouncer.
func Pooled(t testing.TB) *Database {
	t.Helper()
	return Postgres(t).behind(t, "transaction")
}

// StartPooled is like Pooled, but starts a PostgreSQL for this test alone.
func StartPooled(t testing.TB) *Database {
	t.Helper()
	return StartPostgres(t).behind(t, "transaction")
}

// Pooler returns the PgBouncer in front of a database of Pooled or StartPooled.
func (db *Database) Pooler() *Pooler { return db.pooler }

// behind starts a PgBouncer in front of db. It returns a copy of db that has the address of the PgBouncer.
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
	ini string // path of the file of settings, without the port

	mu       sync.Mutex
	settings map[string]string
}

// Set changes a setting of the PgBouncer. If the PgBouncer does not run, the setting takes effect at its next start.
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

// write writes all settings to the configuration file, because PgBouncer reads the whole file on a reload.
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

// serverPort is the key in Pooler.settings of the port at which the PostgreSQL listens.
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
	cred, err := credentialOf("postgres") // PgBouncer refuses to run as root
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
		// With these settings two consecutive transactions use different sessions of the server.
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

// answers returns nil if the PgBouncer at an address answers. It asks the PgBouncer's own database, because the PostgreSQL may be down.
func answers(ctx context.Context, addr string) error {
	db, err := sql.Open("pgx", "postgres://app@"+addr+"/pgbouncer?sslmode=disable&default_query_exec_mode=simple_protocol")
	if err != nil {
		return err
	}
	defer db.Close()
	var version string
	return db.QueryRowContext(ctx, "SHOW VERSION").Scan(&version)
}
