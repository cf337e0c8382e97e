package stdsql

import (
	"context"
	dbsql "database/sql"
	"database/sql/driver"
	"sync"
	"sync/atomic"
	"time"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

// DB is a database behind database/sql, with the common parts of MySQL and SQLite. It keeps its own list of connections, because a
// statement that was prepared on a connection must stay prepared after the transaction.
type DB struct {
	limits  sql.Limits
	Queries sql.Queries
	Pool    *dbsql.DB
	Writer  rowWriter
	// Duplicate reports whether an error means that a unique key exists already.
	Duplicate func(error) bool
	Refused   func(error) bool
	// Culprit, if set, returns the position of the row that made the database refuse a statement of several rows, or a negative number if
	// the row is unknown.
	Culprit func(ctx context.Context, s *Session, p *row.Plan, cause error, rows int) (int, error)
	// Probe, if set, runs a Task with Probe: see sql.Task.
	Probe func(ctx context.Context, s *Session, t sql.Task) (touched int64, err error)
	// Bundles means that one statement for many rows of a fixed query costs less than many statements.
	Bundles bool
	// Spoilt, if set, reports whether a prepared statement is unusable after this error.
	Spoilt func(error) bool
	// Intact, if set, returns an error if the database has ended the transaction because of the refusal.
	Intact func(ctx context.Context, s *Session, cause error) error

	IsCertified atomic.Bool

	slots chan struct{} // contains one entry per session in use
	mu    sync.Mutex
	idle  []*Session
}

// New opens a database by its connector, and allows at most the given number of sessions at the same time. It does not connect.
func New(s sql.Setup, connector driver.Connector, sessions int) *DB {
	d := &DB{limits: s.Limits, Queries: s.Queries, Pool: dbsql.OpenDB(connector), slots: make(chan struct{}, sessions)}
	d.Pool.SetMaxOpenConns(sessions + 2) // a migration needs two connections, also while idle sessions hold theirs
	d.Pool.SetMaxIdleConns(1)
	d.Pool.SetConnMaxIdleTime(time.Minute)
	return d
}

// Certified implements sql.Database.
func (d *DB) Certified() bool { return d.IsCertified.Load() }

// Ping implements sql.Database.
func (d *DB) Ping(ctx context.Context) error { return d.Pool.PingContext(ctx) }

// Plain implements sql.Database.
func (d *DB) Plain() (*dbsql.DB, func() error) { return d.Pool, func() error { return nil } }

// Settings implements sql.Database.
func (d *DB) Settings() string { return "" }

// Close implements sql.Database.
func (d *DB) Close() error {
	d.dropIdle()
	return d.Pool.Close()
}

func (d *DB) dropIdle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.idle {
		s.drop()
	}
	d.idle = nil
}

// freshFor is how long an idle connection is assumed to work without a check.
const freshFor = 500 * time.Millisecond

// Session implements sql.Database.
func (d *DB) Session(ctx context.Context) (sql.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limits.Trip)
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

func (d *DB) connection(ctx context.Context) (*Session, error) {
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
		if time.Since(s.used) < freshFor || s.Conn.PingContext(ctx) == nil {
			return s, nil
		}
		s.drop() // the server has closed the connection, or is being restarted
	}
	conn, err := d.Pool.Conn(ctx)
	if err != nil {
		return nil, sql.Connecting(err)
	}
	s := &Session{Parent: d, Conn: conn, statements: map[string]*dbsql.Stmt{}, direct: map[string]driver.Stmt{}}
	return s, s.arm()
}

// Session is one connection with its prepared statements.
type Session struct {
	Parent     *DB
	Conn       *dbsql.Conn
	statements map[string]*dbsql.Stmt
	direct     map[string]driver.Stmt
	Args       []any // reused for every statement
	named      []driver.NamedValue
	open       bool  // a transaction is open
	Guarded    bool  // rows of the task are expected to be refused
	Replacing  bool  // rows that are deleted are inserted again
	Ignored    int64 // rows of the task that were accepted and not written
	Deleted    int64 // rows of the task that were deleted and not inserted again
	used       time.Time

	cut              func() // cuts the connection, if the driver can
	timer            *time.Timer
	limited, severed bool
}

// Run implements sql.Session.
func (s *Session) Run(ctx context.Context, tasks ...sql.Task) error {
	for len(tasks) > 0 {
		n, done, err := s.bundle(ctx, tasks)
		for _, t := range tasks[:n] {
			if !done && err == nil {
				err = s.one(ctx, t)
			}
		}
		if err != nil {
			return err
		}
		tasks = tasks[n:]
	}
	return nil
}

func (s *Session) one(ctx context.Context, t sql.Task) (err error) {
	ctx, end := s.limit(ctx)
	defer func() { err = end(err) }()
	if t.Plan != nil {
		run := s.rows
		if t.Probe {
			run = s.probe
		}
		touched, err := run(ctx, t)
		if err != nil {
			return err
		}
		return t.Done(touched)
	}
	s.open = s.open || t.Query == "begin"
	touched, err := s.Exec(ctx, s.Parent.Queries[t.Query], t.Args)
	if t.Once && err != nil && s.Parent.Duplicate(err) {
		touched, err = 0, nil
	}
	if err != nil {
		return err
	}
	return t.Done(touched)
}

// Exec runs a statement and returns how many rows it touched. A statement with arguments is prepared.
func (s *Session) Exec(ctx context.Context, text string, args []any) (touched int64, err error) {
	var result dbsql.Result
	if len(args) == 0 {
		result, err = s.Conn.ExecContext(ctx, text) // one round trip; a prepared statement would need three
	} else {
		var statement *dbsql.Stmt
		if statement, err = s.Prepare(ctx, text); err == nil {
			result, err = statement.ExecContext(ctx, args...)
		}
		if err != nil && s.Parent.Spoilt != nil && s.Parent.Spoilt(err) {
			_ = statement.Close() // if this fails, the statement exists until the connection ends
			delete(s.statements, text)
		}
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// ExecRows runs a prepared statement with s.Args, and returns how many rows it touched. It calls the driver directly, because database/sql
// would check and convert each argument again. So each argument must be a driver.Value.
func (s *Session) ExecRows(ctx context.Context, text string) (touched int64, err error) {
	err = s.Conn.Raw(func(conn any) error {
		statement, err := s.prepareDirect(ctx, conn.(driver.ConnPrepareContext), text)
		if err != nil {
			return err
		}
		s.named = s.named[:0]
		for i, a := range s.Args {
			s.named = append(s.named, driver.NamedValue{Ordinal: i + 1, Value: a})
		}
		result, err := statement.(driver.StmtExecContext).ExecContext(ctx, s.named)
		if err != nil {
			if s.Parent.Spoilt != nil && s.Parent.Spoilt(err) {
				_ = statement.Close() // if this fails, the statement exists until the connection ends
				delete(s.direct, text)
			}
			return err
		}
		touched, err = result.RowsAffected()
		return err
	})
	return touched, err
}

// PrepareRows prepares a statement for ExecRows, unless it is prepared on this connection already.
func (s *Session) PrepareRows(ctx context.Context, text string) error {
	return s.Conn.Raw(func(conn any) error {
		_, err := s.prepareDirect(ctx, conn.(driver.ConnPrepareContext), text)
		return err
	})
}

func (s *Session) prepareDirect(ctx context.Context, conn driver.ConnPrepareContext, text string) (driver.Stmt, error) {
	if statement, ok := s.direct[text]; ok {
		return statement, nil
	}
	if len(s.direct) >= sql.MaxStatements {
		s.closeDirect()
	}
	statement, err := conn.PrepareContext(ctx, text)
	if err == nil {
		s.direct[text] = statement
	}
	return statement, err
}

func (s *Session) closeDirect() {
	for _, statement := range s.direct {
		_ = statement.Close() // if this fails, the statement exists until the connection ends
	}
	clear(s.direct)
}

// Prepare prepares a statement, unless it is prepared on this connection already.
func (s *Session) Prepare(ctx context.Context, text string) (*dbsql.Stmt, error) {
	if statement, ok := s.statements[text]; ok {
		return statement, nil
	}
	if len(s.statements) >= sql.MaxStatements {
		for text, statement := range s.statements {
			_ = statement.Close() // if this fails, the statement exists until the connection ends
			delete(s.statements, text)
		}
	}
	statement, err := s.Conn.PrepareContext(ctx, text)
	if err == nil {
		s.statements[text] = statement
	}
	return statement, err
}

// ListChunk limits the number of values in one list of a statement.
const ListChunk = 500

// ListOfValues returns an IN condition. The number of its values is a power of two, so that few different statements are prepared.
func ListOfValues(values []string) (string, []any) {
	n := 1
	for n < len(values) {
		n *= 2
	}
	args := make([]any, n)
	for i := range args {
		args[i] = values[min(i, len(values)-1)]
	}
	return "IN (" + sql.Repeat("?", n) + ")", args
}

// Read implements sql.Session.
func (s *Session) Read(ctx context.Context, text string, args []any, each func(row []any) error) (err error) {
	ctx, end := s.limit(ctx)
	defer func() { err = end(err) }()
	statement, err := s.Prepare(ctx, text)
	if err != nil {
		return err
	}
	rows, err := statement.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close() // errors are reported by rows.Err
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		row := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := each(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Narrow implements sql.Session.
func (s *Session) Narrow() bool { return false }

// Commit implements sql.Session.
func (s *Session) Commit(ctx context.Context) (err error) {
	ctx, end := s.limit(ctx)
	defer func() { err = end(err) }()
	_, err = s.Exec(ctx, s.Parent.Queries["commit"], nil)
	if err == nil {
		s.open = false
	}
	return err
}

// Close implements sql.Session.
func (s *Session) Close(sound bool) {
	defer func() { <-s.Parent.slots }()
	sound = sound && !s.severed
	if sound && s.open {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := s.Exec(ctx, s.Parent.Queries["rollback"], nil)
		sound = err == nil
	}
	if !sound {
		s.drop()
		s.Parent.dropIdle() // the fault that cut this connection has likely cut the idle ones
		return
	}
	s.open, s.used = false, time.Now()
	clear(s.Args[:cap(s.Args)]) // values of a batch must not stay in memory
	clear(s.named[:cap(s.named)])
	s.Parent.mu.Lock()
	defer s.Parent.mu.Unlock()
	s.Parent.idle = append(s.Parent.idle, s)
}

// drop closes the connection for good, so that the database rolls back. SQLite rolls back only when no statement is left on the connection.
func (s *Session) drop() {
	for _, statement := range s.statements {
		_ = statement.Close()
	}
	_ = s.Conn.Raw(func(any) error {
		s.closeDirect()
		return driver.ErrBadConn
	})
	_ = s.Conn.Close()
}
