package sql_test

import (
	dbsql "database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/testsupport"
)

// libpq lists the parameters of libpq 12 to 18, each with a value that libpq accepts. If value is empty, the test uses the value in its own
// DSN.
var libpq = []struct {
	name, value string
	refused     bool
}{
	{name: "host"},
	{name: "port"},
	{name: "user"},
	{name: "dbname"},
	{name: "sslmode"},
	{name: "password", value: "planted"},
	{name: "passfile", value: "/nonexistent/planted"},
	{name: "service", value: "planted", refused: true}, // the service file does not exist
	{name: "servicefile", value: "/nonexistent/planted"},
	{name: "hostaddr", value: "127.0.0.1", refused: true},
	{name: "channel_binding", value: "prefer"},
	{name: "connect_timeout", value: "60"},
	{name: "client_encoding", value: "auto"},
	{name: "options", value: "-c statement_timeout=77s"},
	{name: "application_name", value: "planted"},
	{name: "fallback_application_name", value: "planted"},
	{name: "keepalives", value: "1"},
	{name: "keepalives", value: "0"},
	{name: "keepalives", value: "yes", refused: true},
	{name: "keepalives_idle", value: "77"},
	{name: "keepalives_idle", value: "77s", refused: true},
	{name: "keepalives_interval", value: "7"},
	{name: "keepalives_count", value: "7"},
	{name: "tcp_user_timeout", value: "0"},
	{name: "tcp_user_timeout", value: "7000", refused: true},
	{name: "sslmode", value: "prefer"},
	{name: "sslmode", value: "verify-all", refused: true},
	{name: "sslnegotiation", value: "postgres"},
	{name: "sslnegotiation", value: "indirect", refused: true},
	{name: "sslcompression", value: "0"},
	{name: "sslcompression", value: "1", refused: true},
	{name: "sslcert", value: "/nonexistent/planted", refused: true},
	{name: "sslkey", value: "/nonexistent/planted", refused: true},
	{name: "sslcertmode", value: "disable"},
	{name: "sslpassword", value: "planted"},
	{name: "sslrootcert", value: "/nonexistent/planted", refused: true},
	{name: "sslcrl", value: "/nonexistent/planted", refused: true},
	{name: "sslcrldir", value: "/nonexistent/planted", refused: true},
	{name: "sslsni", value: "1"},
	{name: "sslkeylogfile", value: "/nonexistent/planted", refused: true},
	{name: "requirepeer", value: "planted", refused: true},
	{name: "requiressl", value: "0"},
	{name: "requiressl", value: "1", refused: true},
	{name: "require_auth", value: "none"},
	{name: "require_auth", value: "planted", refused: true},
	{name: "min_protocol_version", value: "3.0"},
	{name: "max_protocol_version", value: "3.0"},
	{name: "ssl_min_protocol_version", value: "TLSv1.2"},
	{name: "ssl_max_protocol_version", value: "TLSv1.3"},
	{name: "ssl_max_protocol_version", value: "SSLv3", refused: true},
	{name: "gssencmode", value: "disable"},
	{name: "gssencmode", value: "prefer"},
	{name: "gssencmode", value: "require", refused: true},
	{name: "gsslib", value: "gssapi", refused: true},
	{name: "gssdelegation", value: "0"},
	{name: "gssdelegation", value: "1", refused: true},
	{name: "krbsrvname", value: "planted", refused: true},
	{name: "replication", value: "false"},
	{name: "replication", value: "database", refused: true},
	{name: "target_session_attrs", value: "read-write"},
	{name: "target_session_attrs", value: "planted", refused: true},
	{name: "load_balance_hosts", value: "disable"},
	{name: "load_balance_hosts", value: "random", refused: true},
	{name: "scram_client_key", value: "planted", refused: true},
	{name: "scram_server_key", value: "planted", refused: true},
	{name: "oauth_issuer", value: "planted", refused: true},
	{name: "oauth_client_id", value: "planted", refused: true},
	{name: "oauth_client_secret", value: "planted", refused: true},
	{name: "oauth_scope", value: "planted", refused: true},
	{name: "authtype", value: "planted", refused: true},
	{name: "tty", value: "planted", refused: true},
}

func TestEveryParameterOfLibpqIsTakenOrRefusedByName(t *testing.T) {
	t.Parallel()
	db := testsupport.Postgres(t)
	base, err := url.Parse(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	pairs := fmt.Sprintf("host=%s port=%s user=app dbname=%s sslmode=disable", base.Hostname(), base.Port(), strings.Trim(base.Path, "/"))
	for _, p := range libpq {
		dsns := []string{pairs}
		if p.value != "" {
			query := base.Query()
			query.Set(p.name, p.value)
			base.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
			dsns = []string{base.String(), fmt.Sprintf("%s %s='%s'", pairs, p.name, p.value)}
			query.Del(p.name)
			query.Set("sslmode", "disable")
			base.RawQuery = query.Encode()
		}
		for _, dsn := range dsns {
			if strings.HasPrefix(p.name, "ssl") && p.name != "sslmode" { // without TLS libpq ignores these parameters
				dsn = strings.Replace(dsn, "sslmode=disable", "sslmode=prefer", 1)
			}
			s, err := open.Database("postgres", sql.Options{Name: "main", DSN: dsn})
			if p.refused {
				if err == nil || !strings.Contains(err.Error(), p.name) || strings.Contains(err.Error(), "planted") {
					t.Errorf("%s: %v, want an error that names %s alone", dsn, err, p.name)
				}
				continue
			}
			if err == nil {
				err = s.Ping(t.Context())
				_ = s.Close() // only the result of the ping matters
			}
			if err != nil {
				t.Errorf("%s: %v", dsn, err)
			}
		}
	}
}

// baton passes a setting that it does not know to the server. The error of the server must say that the setting is in the DSN.
func TestASettingThatTheServerDoesNotKnowIsTheDSNs(t *testing.T) {
	t.Parallel()
	db := testsupport.Postgres(t)
	s, err := open.Database("postgres", sql.Options{Name: "main", DSN: db.DSN + "&no_such_setting=1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err = s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "no_such_setting") || !strings.Contains(err.Error(), "DSN") {
		t.Errorf("%v, want the DSN's no_such_setting", err)
	}
}

// If a DSN has the form of another program, the error shows the form that baton needs. No database is opened, because a driver would
// connect to the local server or to another host.
func TestADSNInTheFormOfAnotherProgramIsToldTheForm(t *testing.T) {
	const postgres, mysql, path = "postgres://user:password@host", "user:password@tcp(host:3306)/database", "path of a file"
	for _, c := range []struct{ driver, dsn, want, form string }{
		{"postgres", "jdbc:postgresql://h:5432/db?user=u&password=planted", "JDBC", postgres},
		{"postgres", "JDBC:postgresql:db", "JDBC", postgres},
		{"postgres", "postgresql+psycopg2://u:planted@h/db", "SQLAlchemy", postgres},
		{"postgres", "postgresql+asyncpg://u:planted@h/db", "SQLAlchemy", postgres},
		{"postgres", "Server=h;Port=5432;Database=db;User Id=u;Password=planted;", "ODBC", postgres},
		{"postgres", "Host=h;Username=u;Password=planted", "ODBC", postgres},
		{"postgres", "User ID=u;Password=planted;Host=h", "ODBC", postgres},
		{"postgres", "Driver={PostgreSQL Unicode};Server=h;Pwd=planted", "ODBC", postgres},
		{"postgres", "pgsql:host=h;user=u;password=planted", "PHP", postgres},
		{"postgres", "mysql://u:planted@h/db", "driver: mysql", postgres},
		{"postgres", "DATABASE_URL=postgres://u:planted@h/db", "variables", postgres},
		{"postgres", "Postgres://u:planted@h/db", "cannot be read", postgres},
		{"postgres", "Server=h", "cannot be read", postgres},
		{"postgres", "password=planted", "cannot be read", postgres},
		{"postgres", "h", "cannot be read", postgres},
		{"mysql", "jdbc:mysql://h:3306/db?user=u&password=planted", "JDBC", mysql},
		{"mariadb", "jdbc:mariadb://h:3306/db", "JDBC", mysql},
		{"mysql", "mysql+pymysql://u:planted@h/db", "SQLAlchemy", mysql},
		{"mysql", "Server=h;Database=db;Uid=u;Pwd=planted;", "ODBC", mysql},
		{"mysql", "mysql:host=h;dbname=planted", "PHP", mysql},
		{"mysql", "mysql://u:planted@h:3306/db", "is a URL", mysql},
		{"mariadb", "mariadb://u:planted@h:3306/db", "is a URL", mysql},
		{"mysql", "postgres://u:planted@h/db", "driver: postgres", mysql},
		{"mysql", "u:planted@tcp(h:3306)/db?ssl-mode=REQUIRED", "tls=true", ""},
		{"mysql", "u:planted@tcp(h:3306)/db?useSSL=true", "tls=true", ""},
		{"sqlite", "jdbc:sqlite:planted.db", "JDBC", path},
		{"sqlite", "postgres://u:planted@h/db", "driver: postgres", path},
	} {
		s, err := open.Database(c.driver, sql.Options{Name: "main", DSN: c.dsn})
		if err == nil {
			_ = s.Close() // no connection was made
			t.Errorf("%s %q: no error", c.driver, c.dsn)
		} else if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.form) ||
			strings.Contains(err.Error(), "planted") {
			t.Errorf("%s %q: %v, want %q and %q", c.driver, c.dsn, err, c.want, c.form)
		}
	}
}

// Today every TLS library rejects a certificate that names its host only in the common name.
func TestACertificateWithoutAltNamesIsToldWhatItLacks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")
	testsupport.CertifyCommonName(t, cert, key, "localhost")
	for driver, dsn := range map[string]string{
		"postgres": "postgres://app@" + startTLSPostgres(t, cert, key) + "/postgres?sslmode=verify-full&sslrootcert=" + cert,
		"mysql":    "app:pw@tcp(" + startTLSMariaDB(t, cert, key) + ")/mysql?tls=true",
	} {
		s, err := open.Database(driver, sql.Options{Name: "main", DSN: strings.Replace(dsn, "127.0.0.1", "localhost", 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		if err = s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "subjectAltName=DNS:localhost") {
			t.Errorf("%s: %v, want what the certificate lacks", driver, err)
		}
		if found, _ := s.Preflight(t.Context(), false); len(found) != 1 ||
			!strings.Contains(found[0].What, "subjectAltName=DNS:localhost") {
			t.Errorf("%s: doctor says %+v", driver, found)
		}
	}
}

// startTLSPostgres starts a PostgreSQL with this certificate and returns its address.
func startTLSPostgres(t *testing.T, cert, key string) string {
	t.Helper()
	addr := testsupport.StartPostgres(t).Addr()
	admin, err := dbsql.Open("pgx", "postgres://postgres@"+addr+"/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, query := range []string{ // the server accepts a key only if other users cannot read it; "cat" reads all input
		"COPY (SELECT 1) TO PROGRAM 'cat; umask 077; echo \"" + readFile(t, key) + "\" > server.key'",
		"COPY (SELECT 1) TO PROGRAM 'cat; echo \"" + readFile(t, cert) + "\" > server.crt'",
		"ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()",
	} {
		if _, err := admin.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	testsupport.Await(t, "the server has TLS", func() bool {
		var on string
		return admin.QueryRow("SHOW ssl").Scan(&on) == nil && on == "on"
	})
	return addr
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// startTLSMariaDB starts a MariaDB with this certificate and returns its address.
func startTLSMariaDB(t *testing.T, cert, key string) string {
	t.Helper()
	dir := filepath.Dir(key)
	for path, mode := range map[string]os.FileMode{key: 0o644, cert: 0o644, dir: 0o755, filepath.Dir(dir): 0o755} {
		if err := os.Chmod(path, mode); err != nil { // the server runs as another user
			t.Fatal(err)
		}
	}
	d, err := testsupport.RunMariaDBWith("", "--ssl-cert="+cert, "--ssl-key="+key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	})
	return d.Addr()
}
