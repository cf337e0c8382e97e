package sql

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// Options configure a Store.
type Options struct {
	Name string // the database's name in the configuration; every error contains it
	// DSN is a URL or keyword string for PostgreSQL, a text of the form "user:password@tcp(host:port)/database" for MySQL, and a file's
	// path for SQLite. The DSN never appears in an error.
	DSN    string
	Prefix string // prefix of the names of baton's own tables; "baton_" if empty
	// LockKey names the election to which the jobs belong. The store does not touch jobs of other elections in this database.
	LockKey string
	// TTL is the duration of the lease. One round trip may take as long. A statement, or the wait for a lock, may take half of that time. A
	// transaction may be idle for a quarter of that time. Default 10 s.
	TTL      time.Duration
	MaxConns int  // maximum number of batches at the same time; default 4. SQLite: always 1
	Pooled   bool // see Setup.Pooled
	// Hide, if set, removes secrets from the text of a driver's error.
	Hide func(said string) string
}

// Store is one database. It implements flush.Sink. Its methods may be called
// concurrently.
type Store struct {
	name     string
	dialect  *Dialect
	prefix   string
	lockKey  string
	limits   Limits
	queries  Queries
	database Database

	hide func(string) string

	marks    *row.Plan        // plan for the table of marks
	kept     func() *row.Plan // returns the plan for the table of deleted rows
	variants cache[variantKey, *row.Plan]
	outcomes cache[*row.Plan, *outcomeHistory]

	migrating sync.Mutex
	migrated  bool

	newest sync.Map // maps a newestKey to the id of the batch that is recorded as the shard's newest
}

var _ flush.Sink = (*Store)(nil)

// Limits contains time limits. The server enforces Lock, Statement and Idle. baton enforces Trip, the limit of a round trip, because a
// server that hangs enforces no limit.
type Limits struct {
	Lock, Statement, Idle, Trip time.Duration
}

// New checks the options. It does not connect, because the database may not be available yet.
func New(d *Dialect, o Options) (*Store, error) {
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
		dialect: d,
		prefix:  o.Prefix,
		lockKey: o.LockKey,
		hide:    o.Hide,
		limits:  Limits{Lock: o.TTL / 2, Statement: o.TTL / 2, Idle: o.TTL / 4, Trip: o.TTL},
	}
	if !prefixForm.MatchString(o.Prefix) {
		return nil, fmt.Errorf("database %q: table prefix %q: use up to 31 lower-case letters, digits and underscores, not starting "+
			"with a digit", o.Name, o.Prefix)
	}
	if err := s.open(o); err != nil {
		return nil, fmt.Errorf("database %q: %w", o.Name, err)
	}
	return s, nil
}

func (s *Store) open(o Options) (err error) {
	if s.queries, err = loadQueries(s.fill(), "queries.sql", common, s.dialect.Files); err != nil {
		return err
	}
	s.marks = newMarksPlan(s.dialect.OwnText, s.prefix)
	s.kept = sync.OnceValue(func() *row.Plan { return newKeptPlan(s.dialect, s.prefix) })
	s.database, err = s.dialect.Open(Setup{DSN: o.DSN, MaxConns: o.MaxConns, Limits: s.limits, Queries: s.queries, Pooled: o.Pooled})
	return err
}

// Ping returns nil if the database answers.
func (s *Store) Ping(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, s.limits.Trip)
	defer cancel()
	err := s.database.Ping(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("database %q: %w", s.name, unappliedError{fmt.Errorf("no answer within %v: %w", s.limits.Trip, s.clean(err))})
	}
	return s.failed(ctx, "ping", err)
}

// Close ends all connections. Call Close when the store is no longer used.
func (s *Store) Close() error {
	if err := s.database.Close(); err != nil {
		return fmt.Errorf("database %q: close: %w", s.name, err)
	}
	return nil
}

// Table implements flush.Sink. It reads the catalogue.
func (s *Store) Table(ctx context.Context, name string) (row.Table, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Trip)
	defer cancel()
	t, err := s.database.Table(ctx, name)
	return t, s.failed(ctx, fmt.Sprintf("read the columns of table %q", name), err)
}

// transact runs work in a new session, and rolls back everything that work has not committed.
func (s *Store) transact(ctx context.Context, doing string, work func(Session) error) error {
	tx, err := s.database.Session(ctx)
	if err != nil {
		return s.failed(ctx, doing, err)
	}
	ended := false
	defer func() {
		if !ended { // after a panic, because others need the connection and the locked rows
			tx.Close(false)
		}
	}()
	err = work(tx)
	ended = true
	known := errors.Is(err, flush.ErrFenced) || errors.Is(err, errApplied) || errors.Is(err, errNotAt) || errors.Is(err, flush.ErrMoved) ||
		errors.Is(err, flush.ErrTooManyDead) || errors.Is(err, flush.ErrGaveWay)
	tx.Close(err == nil || known)
	err = s.failed(ctx, doing, err)
	if err != nil && !known && !errors.Is(err, flush.ErrTransient) {
		s.forgetMigration() // baton's tables are missing if the database was created again
	}
	return err
}
