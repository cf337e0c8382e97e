package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"baton/internal/flush"
)

// Options say which database to open and how.
type Options struct {
	Name   string // what the configuration calls the database; every error names it
	Driver string // "postgres", "mysql" (also "mariadb") or "sqlite"
	// DSN is a URL or keyword string for PostgreSQL, user:password@tcp(host:port)/database
	// for MySQL, a file's path for SQLite. It never appears in an error.
	DSN    string
	Prefix string // of baton's own tables; "baton_" if empty
	// TTL is the lease. Waiting for a lock and one statement may take half of it,
	// idling in a transaction a quarter, one round trip all of it. Default 10 s.
	TTL      time.Duration
	MaxConns int // batches at the same time; default 4. SQLite: always 1
	// Observe is called at every boundary of the protocol, for tests: an error
	// ends the transaction there, as a lost connection would. Nil in production.
	Observe func(Step) error
}

// Store is one database. It implements flush.Sink. Its methods may be called
// concurrently.
type Store struct {
	name     string
	driver   string // postgres, mysql or sqlite; also the name of its files
	prefix   string
	limits   limits
	observe  func(Step) error
	queries  queries
	database database

	marks    *flush.Plan // of the table of marks
	variants cache[variantKey, *flush.Plan]

	migrating sync.Mutex
	migrated  bool

	newest sync.Map // newestKey -> id of the batch that is recorded as the shard's newest
}

var _ flush.Sink = (*Store)(nil)

// limits are the time limits that the server keeps for us, and the one that we
// keep because a server that hangs keeps none.
type limits struct {
	lock, statement, idle, trip time.Duration
}

// Open checks the options. It does not connect: the database may come later.
func Open(o Options) (*Store, error) {
	if o.Prefix == "" {
		o.Prefix = "baton_"
	}
	if o.TTL <= 0 {
		o.TTL = 10 * time.Second
	}
	if o.MaxConns <= 0 {
		o.MaxConns = 4
	}
	s := &Store{
		name:    o.Name,
		prefix:  o.Prefix,
		limits:  limits{lock: o.TTL / 2, statement: o.TTL / 2, idle: o.TTL / 4, trip: o.TTL},
		observe: o.Observe,
	}
	if !prefixForm.MatchString(o.Prefix) {
		return nil, fmt.Errorf("database %q: table prefix %q: use up to 31 lower-case letters, digits and underscores, not starting with a digit", o.Name, o.Prefix)
	}
	if err := s.open(o); err != nil {
		return nil, fmt.Errorf("database %q: %w", o.Name, err)
	}
	return s, nil
}

func (s *Store) open(o Options) (err error) {
	s.driver = o.Driver
	if s.driver == "mariadb" {
		s.driver = "mysql"
	}
	opener := map[string]func(*Store, Options) (database, error){
		"postgres": openPostgres, "mysql": openMySQL, "sqlite": openSQLite,
	}[s.driver]
	if opener == nil {
		return fmt.Errorf("driver %q is not known: use postgres, mysql, mariadb or sqlite", o.Driver)
	}
	if s.queries, err = loadQueries(s.driver, s.fill()); err != nil {
		return err
	}
	s.marks = newMarksPlan(s.driver, s.prefix)
	s.database, err = opener(s, o)
	return err
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.trip)
	defer cancel()
	return s.failed(ctx, "ping", s.database.ping(ctx))
}

// Close ends all connections. Call it when nothing uses the store any more.
func (s *Store) Close() error {
	if err := s.database.close(); err != nil {
		return fmt.Errorf("database %q: close: %w", s.name, err)
	}
	return nil
}

// Table reads the catalogue: see flush.Sink.
func (s *Store) Table(ctx context.Context, name string) (flush.Table, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.trip)
	defer cancel()
	t, err := s.database.table(ctx, name)
	return t, s.failed(ctx, fmt.Sprintf("read the columns of table %q", name), err)
}

// transact runs work in a session of its own. Whatever work has not committed
// is rolled back.
func (s *Store) transact(ctx context.Context, doing string, work func(session) error) error {
	tx, err := s.database.session(ctx)
	if err != nil {
		return s.failed(ctx, doing, err)
	}
	ended := false
	defer func() {
		if !ended { // a panic: others need the connection, and the rows that are locked
			tx.close(false)
		}
	}()
	err = work(tx)
	ended = true
	known := errors.Is(err, flush.ErrFenced) || errors.Is(err, errApplied) || errors.Is(err, flush.ErrMoved) || errors.Is(err, flush.ErrTooManyDead)
	tx.close(err == nil || known)
	err = s.failed(ctx, doing, err)
	if err != nil && !known && !errors.Is(err, flush.ErrTransient) {
		s.forgetMigration() // our own tables may be gone, with a database that was made anew
	}
	return err
}
