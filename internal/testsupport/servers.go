package testsupport

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// These environment variables name the programs that test/versions uses instead of redis-server and mariadbd. Without them tests use the
// system's own programs.
const (
	redisServerEnv = "BATON_TEST_REDIS_SERVER" // for example valkey-server
	mysqlServerEnv = "BATON_TEST_MYSQL_SERVER" // mysqld
)

func redisProgram() string { return cmp.Or(os.Getenv(redisServerEnv), "redis-server") }

// Dialect names the database server that a test needs. Both MariaDB and MySQL use the protocol of MySQL.
type Dialect string

// The dialects are:
const (
	DialectMariaDB Dialect = "MariaDB"
	DialectMySQL   Dialect = "MySQL"
)

// dialect returns the dialect of the server that MariaDB and StartMariaDB start.
func dialect() Dialect {
	if strings.HasPrefix(filepath.Base(os.Getenv(mysqlServerEnv)), "mysqld") {
		return DialectMySQL
	}
	return DialectMariaDB
}

// HasDialect reports whether MariaDB and StartMariaDB start a server of that dialect.
func HasDialect(d Dialect) bool { return dialect() == d }

// NeedsDialect skips a test if the server has another dialect. By default the server is MariaDB.
func NeedsDialect(t testing.TB, d Dialect) {
	t.Helper()
	if has := dialect(); has != d {
		t.Skipf("this test needs %s, and this run has %s", d, has)
	}
}
