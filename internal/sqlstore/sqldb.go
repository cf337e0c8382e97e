package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"baton/internal/flush"
)

// sqlDB is a database behind database/sql: what MySQL and SQLite have in common.
// It keeps its own connections, because statements prepared on one of them
// must outlive the transaction.
type sqlDB struct {
	store  *Store
	db     *sql.DB
	writer rowWriter
	// duplicate: the error says that a unique key is taken already.
	duplicate func(error) bool
	refused   func(error) bool
	// spoilt, if set, says that a prepared statement is of no use after this error.
	spoilt func(error) bool
	// intact, if set, fails when the database has ended the transaction because of
	// the refusal.
	intact func(ctx context.Context, s *sqlSession, cause error) error

	slots chan struct{} // one per session in use
	mu    sync.Mutex
	idle  []*sqlSession
}

// rowWriter writes rows of one operation, in an order that it is given.
type rowWriter interface {
	// write answers how many rows are written. Where the database refused some,
	// it also says how many of the next ones are in doubt.
	write(ctx context.Context, s *sqlSession, p *flush.Plan, rows []flush.Row, remove bool) (done, doubt int, err error)
	// update changes a row that is there, and answers 0 if none is.
	update(ctx context.Context, s *sqlSession, p *flush.Plan, row *flush.Row) (touched int64, err error)
}

func newSQLDB(s *Store, connector driver.Connector, sessions int) *sqlDB {
	d := &sqlDB{store: s, db: sql.OpenDB(connector), slots: make(chan struct{}, sessions)}
	d.db.SetMaxOpenConns(sessions + 1) // one for catalogue and migration
	d.db.SetMaxIdleConns(1)
	d.db.SetConnMaxIdleTime(time.Minute)
	return d
}

func (d *sqlDB) ping(ctx context.Context) error { return d.db.PingContext(ctx) }

func (d *sqlDB) close() error {
	d.dropIdle()
	return d.db.Close()
}

func (d *sqlDB) dropIdle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.idle {
		s.drop()
	}
	d.idle = nil
}

// freshFor is how long an idle connection is taken to be alive.
const freshFor = 500 * time.Millisecond

func (d *sqlDB) session(ctx context.Context) (session, error) {
	ctx, cancel := context.WithTimeout(ctx, d.store.limits.trip)
	defer cancel()
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s, err := d.connection(ctx)
	if err != nil {
		<-d.slots
		return nil, err
	}
	return s, nil
}

func (d *sqlDB) connection(ctx context.Context) (*sqlSession, error) {
	for {
		d.mu.Lock()
		n := len(d.idle) - 1
		if n < 0 {
			d.mu.Unlock()
			break
		}
		s := d.idle[n]
		d.idle = d.idle[:n]
		d.mu.Unlock()
		if time.Since(s.used) < freshFor || s.conn.PingContext(ctx) == nil {
			return s, nil
		}
		s.drop() // the server has closed it meanwhile, or is being restarted
	}
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &sqlSession{db: d, conn: conn, statements: map[string]*sql.Stmt{}}, nil
}

// sqlSession is one connection with its prepared statements.
type sqlSession struct {
	db         *sqlDB
	conn       *sql.Conn
	statements map[string]*sql.Stmt
	args       []any // reused for every statement
	open       bool  // a transaction is
	replacing  bool  // rows that are deleted come back
	used       time.Time
}

func (s *sqlSession) run(ctx context.Context, tasks ...task) error {
	for _, t := range tasks {
		if err := s.one(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqlSession) one(ctx context.Context, t task) error {
	ctx, cancel := context.WithTimeout(ctx, s.db.store.limits.trip)
	defer cancel()
	if t.plan != nil {
		touched, err := s.rows(ctx, t)
		if err != nil {
			return err
		}
		return t.done(touched)
	}
	s.open = s.open || t.query == "begin"
	touched, err := s.exec(ctx, s.db.store.queries[t.query], t.args)
	if t.once && err != nil && s.db.duplicate(err) {
		touched, err = 0, nil
	}
	if err != nil {
		return err
	}
	return t.done(touched)
}

// rows relies on each statement being all or nothing in these databases, so
// that a refused one leaves the transaction as it was: no savepoints are needed.
func (s *sqlSession) rows(ctx context.Context, t task) (touched int64, err error) {
	done, doubt := 0, len(t.rows)
	switch {
	case t.update:
		touched, err = s.db.writer.update(ctx, s, t.plan, &t.rows[0])
	case t.replace:
		done, doubt, err = s.replace(ctx, t)
		touched = int64(done)
	default:
		deletes := countDeletes(t.rows)
		done, doubt, err = s.db.writer.write(ctx, s, t.plan, t.rows[:deletes], true)
		if err == nil {
			done, doubt, err = s.db.writer.write(ctx, s, t.plan, t.rows[deletes:], false)
			done += deletes
		}
		touched = int64(done)
	}
	if err != nil && s.db.refused(err) {
		if s.db.intact != nil {
			if gone := s.db.intact(ctx, s, err); gone != nil {
				return 0, gone
			}
		}
		return 0, &refusal{done: done, size: doubt, cause: err}
	}
	return touched, err
}

// What surrounds rows that are replaced.
const (
	sqlSavepoint = "SAVEPOINT baton_rows"
	sqlUndo      = "ROLLBACK TO SAVEPOINT baton_rows"
	sqlRelease   = "RELEASE SAVEPOINT baton_rows"
)

// replace deletes rows and inserts them anew. Where one is refused, what was there
// stays: the deletions are undone with all the rest.
func (s *sqlSession) replace(ctx context.Context, t task) (done, doubt int, err error) {
	if _, err := s.exec(ctx, sqlSavepoint, nil); err != nil {
		return 0, 0, err
	}
	s.replacing = true
	_, _, err = s.db.writer.write(ctx, s, t.plan, t.rows, true)
	s.replacing = false
	if err == nil {
		_, _, err = s.db.writer.write(ctx, s, t.plan, t.rows, false)
	}
	if err == nil {
		_, err = s.exec(ctx, sqlRelease, nil)
		return len(t.rows), 0, err
	}
	if s.db.refused(err) {
		for _, text := range []string{sqlUndo, sqlRelease} {
			if _, failed := s.exec(ctx, text, nil); failed != nil {
				return 0, len(t.rows), errors.Join(err, failed)
			}
		}
	}
	return 0, len(t.rows), err
}

func (s *sqlSession) exec(ctx context.Context, text string, args []any) (touched int64, err error) {
	var result sql.Result
	if len(args) == 0 {
		result, err = s.conn.ExecContext(ctx, text) // one round trip; prepared it would be three
	} else {
		var statement *sql.Stmt
		if statement, err = s.prepare(ctx, text); err == nil {
			result, err = statement.ExecContext(ctx, args...)
		}
		if err != nil && s.db.spoilt != nil && s.db.spoilt(err) {
			_ = statement.Close() // at worst it lives as long as the connection
			delete(s.statements, text)
		}
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// maxStatements bounds what one connection keeps prepared.
const maxStatements = 500

func (s *sqlSession) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if statement, ok := s.statements[text]; ok {
		return statement, nil
	}
	if len(s.statements) >= maxStatements {
		for text, statement := range s.statements {
			_ = statement.Close() // at worst it lives as long as the connection
			delete(s.statements, text)
		}
	}
	statement, err := s.conn.PrepareContext(ctx, text)
	if err == nil {
		s.statements[text] = statement
	}
	return statement, err
}

func (s *sqlSession) fence(ctx context.Context, query, job string) (flush.Fence, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.store.limits.trip)
	defer cancel()
	f := flush.Fence{Job: job}
	statement, err := s.prepare(ctx, s.db.store.queries[query])
	if err != nil {
		return f, false, err
	}
	err = statement.QueryRowContext(ctx, job).Scan(&f.Epoch, &f.Owner)
	if errors.Is(err, sql.ErrNoRows) {
		return f, false, nil
	}
	return f, err == nil, err
}

// lookupChunk is how many names one statement asks for.
const lookupChunk = 500

func (s *sqlSession) lookup(ctx context.Context, query, job string, names []string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.store.limits.trip)
	defer cancel()
	found := make(map[string]string, len(names))
	for some := range slices.Chunk(names, lookupChunk) {
		n := 1
		for n < len(some) {
			n *= 2 // few statements, each prepared once
		}
		args := make([]any, 1, n+1)
		args[0] = job
		for i := range n {
			args = append(args, some[min(i, len(some)-1)])
		}
		statement, err := s.prepare(ctx, fmt.Sprintf(s.db.store.queries[query], repeat("?", n)))
		if err != nil {
			return nil, err
		}
		if err := readLookup(ctx, statement, args, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func readLookup(ctx context.Context, statement *sql.Stmt, args []any, into map[string]string) error {
	rows, err := statement.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close() // Err tells what went wrong
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		into[name] = value
	}
	return rows.Err()
}

func (s *sqlSession) commit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.db.store.limits.trip)
	defer cancel()
	_, err := s.exec(ctx, s.db.store.queries["commit"], nil)
	if err == nil {
		s.open = false
	}
	return err
}

func (s *sqlSession) close(sound bool) {
	defer func() { <-s.db.slots }()
	if sound && s.open {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := s.exec(ctx, s.db.store.queries["rollback"], nil)
		sound = err == nil
	}
	if !sound {
		s.drop()
		s.db.dropIdle() // what cut this connection has likely cut them, too
		return
	}
	s.open, s.used = false, time.Now()
	clear(s.args[:cap(s.args)]) // values of a batch must not stay in memory
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	s.db.idle = append(s.db.idle, s)
}

// drop closes the connection for good; the database rolls back. SQLite does so
// only when no statement is left on the connection.
func (s *sqlSession) drop() {
	for _, statement := range s.statements {
		_ = statement.Close()
	}
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = s.conn.Close()
}
