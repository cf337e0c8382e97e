package main

import (
	"fmt"

	"baton/internal/testsupport"
)

// engine is a kind of database.
type engine struct {
	driver    string // as baton's configuration calls it
	title     string
	sqlDriver string // as database/sql knows it; testsupport brings the drivers in
	// start runs a server; nil for a database that is a file.
	start func(dir string) (*testsupport.SQLDaemon, error)
	// types of the columns: a key, a text, an integer, a time.
	key, text, integer, instant string
	// series is a table of the numbers i from 1 to n.
	series func(n int) string
	empty  func(table string) string
	// settle brings a table that was just filled to rest.
	settle func(table string) []string
	place  func(i int) string // the i-th placeholder, from 1
	// conflict begins what an upsert does to a row that is there; incoming is the
	// new value of a column in it.
	conflict string
	incoming func(column string) string
}

func postgres() engine {
	return engine{
		driver: "postgres", title: "PostgreSQL", sqlDriver: "pgx",
		start: func(dir string) (*testsupport.SQLDaemon, error) {
			return testsupport.RunPostgresWith(dir, "fsync=on", "synchronous_commit=on", "shared_buffers=512MB",
				"max_wal_size=8GB", "checkpoint_timeout=30min", "autovacuum=off")
		},
		key: "bigint PRIMARY KEY", text: "text", integer: "bigint", instant: "timestamptz",
		series: func(n int) string { return fmt.Sprintf("generate_series(1, %d) AS s(i)", n) },
		empty:  func(table string) string { return "TRUNCATE " + table },
		settle: func(table string) []string { return []string{"VACUUM ANALYZE " + table} },
		place:  func(i int) string { return fmt.Sprintf("$%d", i) },

		conflict: "ON CONFLICT (id) DO UPDATE SET",
		incoming: func(column string) string { return "excluded." + column },
	}
}
