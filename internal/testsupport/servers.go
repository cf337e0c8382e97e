package testsupport

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The programs that stand in for redis-server and mariadbd while test/versions runs the tests
// against other servers. Without them tests run against the system's own.
const (
	redisServerEnv = "BATON_TEST_REDIS_SERVER" // such as valkey-server
	mysqlServerEnv = "BATON_TEST_MYSQL_SERVER" // mysqld
)

func redisProgram() string { return cmp.Or(os.Getenv(redisServerEnv), "redis-server") }

// Dialect is the server that a test needs where two of them speak the protocol of MySQL.
type Dialect string

// The dialects.
const (
	DialectMariaDB Dialect = "MariaDB"
	DialectMySQL   Dialect = "MySQL"
)

// dialect is that of the server that MariaDB and StartMariaDB start.
func dialect() Dialect {
	if strings.HasPrefix(filepath.Base(os.Getenv(mysqlServerEnv)), "mysqld") {
		return DialectMySQL
	}
	return DialectMariaDB
}

// HasDialect reports whether the server of MariaDB and StartMariaDB is of that dialect.
func HasDialect(d Dialect) bool { return dialect() == d }

// NeedsDialect leaves a test out of a run against a server of another dialect. The usual run is
// against MariaDB.
func NeedsDialect(t testing.TB, d Dialect) {
	t.Helper()
	if has := dialect(); has != d {
		t.Skipf("this test needs %s, and this run has %s", d, has)
	}
}
