package main

import (
	"fmt"

	"baton/internal/testsupport"
)

// engine is a kind of database, with settings that make it durable and let its cache hold the table.
type engine struct {
	driver    string // the engine's name in baton's configuration
	title     string
	sqlDriver string // the driver's name in database/sql; package testsupport imports the drivers
	// start runs a server. It is nil for a database that is a file.
	start func(dir string) (*testsupport.SQLDaemon, error)
	// open converts baton's data source name to a data source name for database/sql.
	open func(dsn string) string
	// These are the types of the columns: a key, a text, an integer, a time.
	key, text, integer, instant string
	// series returns a table of the numbers i from 1 to n.
	series func(n int) string
	empty  func(table string) string
	// settle returns the statements that bring a table to rest that was just filled.
	settle func(table string) []string
	place  func(i int) string // the i-th placeholder, from 1
	// conflict begins the part of an upsert for an existing row. incoming returns the new value of a column in that part.
	conflict string
	incoming func(column string) string
	// The naive program writes only one row in naiveShare, because it is slow.
	naiveShare int
}

func postgres() engine {
	return engine{
		driver: "postgres", title: "PostgreSQL", sqlDriver: "pgx",
		start: startPostgres("autovacuum=off"),
		open:  func(dsn string) string { return dsn },
		key:   "bigint PRIMARY KEY", text: "text", integer: "bigint", instant: "timestamptz",
		series:     func(n int) string { return fmt.Sprintf("generate_series(1, %d) AS s(i)", n) },
		empty:      func(table string) string { return "TRUNCATE " + table },
		settle:     agePostgres,
		place:      func(i int) string { return fmt.Sprintf("$%d", i) },
		conflict:   "ON CONFLICT (id) DO UPDATE SET",
		incoming:   func(column string) string { return "excluded." + column },
		naiveShare: 10,
	}
}

// gridPostgres returns PostgreSQL with autovacuum, so that each table can switch autovacuum on or off.
func gridPostgres() engine {
	e := postgres()
	e.start = startPostgres("autovacuum=on", "autovacuum_naptime=5s")
	return e
}

func startPostgres(more ...string) func(dir string) (*testsupport.SQLDaemon, error) {
	settings := append([]string{"fsync=on", "synchronous_commit=on", "shared_buffers=512MB", "max_wal_size=8GB", "checkpoint_timeout=30min"}, more...)
	return func(dir string) (*testsupport.SQLDaemon, error) { return testsupport.RunPostgresWith(dir, settings...) }
}

func maria() engine {
	return engine{
		driver: "mysql", title: "MariaDB", sqlDriver: "mysql",
		start: func(dir string) (*testsupport.SQLDaemon, error) {
			return testsupport.RunMariaDBWith(dir, "--innodb-flush-log-at-trx-commit=1",
				"--innodb-buffer-pool-size=512M", "--innodb-log-file-size=1G")
		},
		open: func(dsn string) string { return dsn },
		key:  "bigint PRIMARY KEY", text: "varchar(200)", integer: "bigint", instant: "datetime",
		series:     func(n int) string { return fmt.Sprintf("(SELECT seq AS i FROM seq_1_to_%d) AS s", n) },
		empty:      func(table string) string { return "TRUNCATE " + table },
		settle:     func(table string) []string { return []string{"ANALYZE TABLE " + table} },
		place:      func(int) string { return "?" },
		conflict:   "ON DUPLICATE KEY UPDATE",
		incoming:   func(column string) string { return "VALUES(" + column + ")" },
		naiveShare: 10,
	}
}

func sqlite() engine {
	return engine{
		driver: "sqlite", title: "SQLite", sqlDriver: "sqlite",
		open: func(dsn string) string {
			return "file:" + dsn + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
		},
		key: "INTEGER PRIMARY KEY", text: "text", integer: "integer", instant: "datetime",
		series: func(n int) string {
			return fmt.Sprintf("(WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < %d) SELECT i FROM s)", n)
		},
		empty:      func(table string) string { return "DELETE FROM " + table },
		settle:     func(string) []string { return []string{"PRAGMA wal_checkpoint(TRUNCATE)"} },
		place:      func(int) string { return "?" },
		conflict:   "ON CONFLICT (id) DO UPDATE SET",
		incoming:   func(column string) string { return "excluded." + column },
		naiveShare: 100, // every commit waits for the disk
	}
}

// agePostgres makes a table that was just filled look like a table with many past writes: its pages have the free space that vacuum
// leaves between updates.
func agePostgres(table string) []string {
	var out []string
	for third := range 3 {
		out = append(out, fmt.Sprintf("UPDATE %s SET id = id WHERE id %% 3 = %d", table, third), "VACUUM "+table)
	}
	return append(out, "VACUUM ANALYZE "+table)
}
