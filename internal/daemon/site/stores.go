package site

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"baton/internal/config"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/heartbeat"
	"baton/internal/secret"
)

// Databases are the open databases by their names in the configuration.
type Databases map[string]*sql.Store

// OpenDatabases prepares all databases. It does not connect, because the databases may become available later. Its error has the type
// config.Problems.
func OpenDatabases(c config.Config) (Databases, error) {
	open := Databases{}
	var problems config.Problems
	for _, name := range slices.Sorted(maps.Keys(c.Databases)) {
		store, err := OpenDatabase(c, name)
		if err != nil {
			problems = append(problems, unusable(c, name, err))
			continue
		}
		open[name] = store
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems.Sorted(), open.Close())
	}
	return open, nil
}

// CheckDatabases returns the problems that would make OpenDatabases fail. If files is false, it checks only the DSNs that the
// configuration itself contains. An unreadable file is not among the problems.
func CheckDatabases(c config.Config, files bool) (problems config.Problems) {
	for _, name := range slices.Sorted(maps.Keys(c.Databases)) {
		d := c.Databases[name]
		if _, err := d.DSN(); err != nil || d.DSNFile != "" && !files {
			continue
		}
		store, err := OpenDatabase(c, name)
		if err != nil {
			problems = append(problems, unusable(c, name, err))
			continue
		}
		_ = store.Close() // there was no connection
	}
	return problems.Sorted()
}

// unusable returns the problem of a database that cannot be opened. The problem names the setting of the database's DSN.
func unusable(c config.Config, name string, err error) config.Problem {
	at := "databases." + name + ".dsn"
	if c.Databases[name].DSNFile != "" {
		at += "_file"
	}
	said := strings.TrimPrefix(err.Error(), fmt.Sprintf("database %q: ", name))
	return c.Problem(at, strings.TrimPrefix(said, "dsn_file: "))
}

// OpenDatabase prepares one database, without connecting.
func OpenDatabase(c config.Config, name string) (*sql.Store, error) {
	d := c.Databases[name]
	dsn, err := d.DSN()
	if err != nil {
		return nil, err
	}
	secrets := secret.InDSN(dsn)
	return open.Database(d.Driver, sql.Options{
		Hide: func(said string) string { return secret.Hide(said, secrets) },
		Name: name, DSN: dsn, TTL: c.Election.TTL, MaxConns: Connections(c, name), Pooled: d.Pooler == config.PoolerTransaction,
		LockKey: c.Election.LockKey,
	})
}

// Connections returns how many connections to a database its jobs can use at the same time. The result is between 4 and 32.
func Connections(c config.Config, database string) int {
	lanes := 0
	for _, j := range c.Jobs {
		if j.Flush.To.Database == database {
			lanes += max(j.Flush.Lanes, 1)
		}
	}
	const least, most = 4, 32 // if there are more jobs, they take turns
	return min(max(lanes, least), most)
}

// Close drops the connections to all databases.
func (d Databases) Close() error {
	var problems []error
	for _, store := range d {
		problems = append(problems, store.Close())
	}
	return errors.Join(problems...)
}

// Timing returns the durations that concern the lease, such as its TTL and the interval of its renewals.
func Timing(e config.Election) heartbeat.Timing {
	return heartbeat.Timing{
		TTL: e.TTL, Interval: e.HeartbeatInterval, Timeout: e.AttemptTimeout,
		Margin: heartbeat.DefaultMargin(e.TTL), Drain: e.Drain,
	}
}

// Without returns the databases that are not in the argument others.
func (d Databases) Without(others Databases) Databases {
	rest := Databases{}
	for name, db := range d {
		if others[name] != db {
			rest[name] = db
		}
	}
	return rest
}
