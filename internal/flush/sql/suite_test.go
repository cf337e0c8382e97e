package sql_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/flush/sql/sqltest"
	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

// kinds lists the kinds of databases. The suite runs every test of a promise with each of them.
var kinds = []struct {
	name string
	make func(testing.TB) *testsupport.Database
}{
	{"postgres", testsupport.Postgres},
	{"mariadb", mariaDB},
	{"sqlite", testsupport.SQLite},
}

// packet is the longest message that the MariaDB of these tests accepts, in bytes.
const packet = 1 << 20

var lowerPacket sync.Once

// mariaDB returns a MariaDB of package testsupport with a limit that a test reaches without much work.
func mariaDB(t testing.TB) *testsupport.Database {
	t.Helper()
	db := testsupport.MariaDB(t)
	lowerPacket.Do(func() { db.Exec(t, fmt.Sprint("SET GLOBAL max_allowed_packet = ", packet)) })
	return db
}

// everywhere runs a test with all kinds of databases in parallel, so the test must not share data between them. The databases contain
// baton's own tables.
func everywhere(t *testing.T, test func(t *testing.T, db *bench)) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			test(t, prepared(t, kind.make))
		})
	}
}

// emptyEverywhere is like everywhere, but the databases do not contain baton's own tables.
func emptyEverywhere(t *testing.T, test func(t *testing.T, db *bench)) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			test(t, &bench{Database: kind.make(t), t: t})
		})
	}
}

// inTurn runs a test with one kind of database after the other.
func inTurn(t *testing.T, test func(t *testing.T, db *bench)) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) { test(t, prepared(t, kind.make)) })
	}
}

// servers is like everywhere without SQLite, which has no connection that can be cut.
func servers(t *testing.T, test func(t *testing.T, db *bench)) {
	for _, kind := range kinds[:2] {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			test(t, prepared(t, kind.make))
		})
	}
}

// emptyServers is like servers, but the databases do not contain baton's own tables.
func emptyServers(t *testing.T, test func(t *testing.T, db *bench)) {
	for _, kind := range kinds[:2] {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			test(t, &bench{Database: kind.make(t), t: t})
		})
	}
}

// onPostgres returns a PostgreSQL database with baton's own tables.
func onPostgres(t *testing.T) *bench { t.Helper(); return prepared(t, testsupport.Postgres) }

// prepared returns a database with baton's own tables.
func prepared(t testing.TB, make func(testing.TB) *testsupport.Database) *bench {
	t.Helper()
	b := &bench{Database: make(t), t: t}
	d, err := open.Dialect(b.Driver)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := sql.OwnTables(d)
	if err != nil {
		t.Fatal(err)
	}
	b.Exec(t, tables)
	return b
}

// bench is a database under test.
type bench struct {
	*testsupport.Database
	t       testing.TB
	observe func(sqltest.Step) error
}

// open opens a store. change may alter its options. The lease is so long that no server ends a transaction because the machine has delayed
// the test.
func (b *bench) open(change ...func(*sql.Options)) *sql.Store {
	b.t.Helper()
	o := sql.Options{Name: "main", DSN: b.DSN, TTL: time.Minute}
	for _, c := range change {
		c(&o)
	}
	d, err := open.Dialect(b.Driver)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.observe != nil {
		d = sqltest.Observed(d, b.observe)
	}
	s, err := sql.New(d, o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return s
}

// benchStore opens a store for a benchmark.
func (b *bench) benchStore(t testing.TB) *sql.Store {
	t.Helper()
	s, err := open.Database(b.Driver, sql.Options{Name: "main", DSN: b.DSN})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// observing returns the same database. Its stores call f at every step, and stop where f returns an error.
func (b *bench) observing(f func(sqltest.Step) error) *bench {
	observed := *b
	observed.observe = f
	return &observed
}

func ttl(d time.Duration) func(*sql.Options) {
	return func(o *sql.Options) { o.TTL = d }
}

// speaksMariaDB skips a test in a run with MySQL.
func (b *bench) speaksMariaDB(t testing.TB) {
	t.Helper()
	if b.Driver == "mysql" {
		testsupport.NeedsDialect(t, testsupport.DialectMariaDB)
	}
}

// create runs the statement for this kind of database.
func (b *bench) create(postgres, mysql, sqlite string) {
	b.t.Helper()
	b.Exec(b.t, map[string]string{"postgres": postgres, "mysql": mysql, "sqlite": sqlite}[b.Driver])
}

// articles makes a table of counters: id, views.
func (b *bench) articles() {
	b.t.Helper()
	b.create(
		"CREATE TABLE articles (id bigint PRIMARY KEY, views bigint)",
		"CREATE TABLE articles (id bigint PRIMARY KEY, views bigint) ENGINE=InnoDB",
		"CREATE TABLE articles (id INTEGER PRIMARY KEY, views INTEGER)")
}

// people makes a table of rows: id, a name of at most 10 characters, an age of at least 0.
func (b *bench) people() {
	b.t.Helper()
	b.create(
		"CREATE TABLE people (id bigint PRIMARY KEY, name varchar(10) NOT NULL, age integer CONSTRAINT grown CHECK (age >= 0))",
		"CREATE TABLE people (id bigint PRIMARY KEY, name varchar(10) NOT NULL, age integer, CONSTRAINT grown CHECK (age >= 0)) "+
			"ENGINE=InnoDB",
		"CREATE TABLE people (id INTEGER PRIMARY KEY, name varchar(10) NOT NULL CHECK (length(name) <= 10), age integer CONSTRAINT "+
			"grown CHECK (age >= 0))")
}

// expect compares the result of a query with want. Each row is written as its values joined by |.
func (b *bench) expect(query string, want ...string) {
	b.t.Helper()
	var got []string
	for _, row := range b.Rows(b.t, query) {
		got = append(got, strings.Join(row, "|"))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		b.t.Errorf("%s:\ngot  %q\nwant %q", query, got, want)
	}
}

// plan returns a plan that writes all columns by the key, and adds to the columns named in add.
func plan(t testing.TB, s *sql.Store, table string, key []string, add ...string) *row.Plan {
	t.Helper()
	found, err := s.Table(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	p := &row.Plan{Table: found, Inputs: []string{"all"}}
	for i, c := range found.Columns {
		column := row.PlanColumn{Column: c}
		for _, name := range add {
			if c.Name == name {
				column.Op = row.OpAdd
			}
		}
		for _, name := range key {
			if c.Name == name {
				p.Key = append(p.Key, i)
			}
		}
		p.Columns = append(p.Columns, column)
	}
	return p
}

// rowOf returns a row of Go values: int, string (text), float64, bool, time.Time, nil.
func rowOf(values ...any) row.Row {
	r := row.Row{Record: row.Record{Key: fmt.Sprint(values[0]), Inputs: []row.Raw{{Text: fmt.Sprintf("%v", values), OK: true}}}}
	for _, v := range values {
		r.Values = append(r.Values, value(v))
	}
	return r
}

func value(v any) row.Value {
	switch v := v.(type) {
	case nil:
		return row.Value{}
	case int:
		return row.Integer(int64(v))
	case float64:
		return row.Float(v)
	case bool:
		return row.Boolean(v)
	case time.Time:
		return row.Timestamp(v)
	case row.Value:
		return v
	default:
		return row.String(row.KindText, fmt.Sprint(v))
	}
}

// gone returns a deleted row of a table with the given number of columns. The row begins with its key.
func gone(columns int, key ...any) row.Row {
	r := rowOf(key...)
	r.Values = append(r.Values, make([]row.Value, columns-len(key))...)
	r.Delete = true
	return r
}

func batch(id string, part int, rows ...row.Row) flush.Batch {
	return flush.Batch{ID: id, Part: part, Rows: rows}
}

func fence(epoch int64) flush.Fence {
	return flush.Fence{Job: "j", Epoch: epoch, Owner: fmt.Sprintf("owner-%d", epoch), NodeID: "n"}
}

func takeOver(t testing.TB, s *sql.Store, f flush.Fence) {
	t.Helper()
	if err := persistTakeOver(t, s, f); err != nil {
		t.Fatalf("take over with epoch %d: %v", f.Epoch, err)
	}
}

// leading opens a store and takes over the fence, as the first leader does.
func (b *bench) leading(change ...func(*sql.Options)) *sql.Store {
	b.t.Helper()
	s := b.open(change...)
	takeOver(b.t, s, fence(1))
	return s
}

// flushing is like leading, and also returns the plan of a table: see plan.
func (b *bench) flushing(table string, key []string, add ...string) (*sql.Store, *row.Plan) {
	b.t.Helper()
	s := b.leading()
	return s, plan(b.t, s, table, key, add...)
}

// persistTakeOver repeats TakeOver while its error is transient, as a flush does. Takeovers at the same time may deadlock, and on a busy
// machine a transaction may be idle for too long.
func persistTakeOver(t testing.TB, s *sql.Store, f flush.Fence) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := s.TakeOver(ctx, f)
		if !errors.Is(err, flush.ErrTransient) || ctx.Err() != nil {
			return err
		}
	}
}

func apply(t testing.TB, s *sql.Store, f flush.Fence, p *row.Plan, b flush.Batch) flush.Outcome {
	t.Helper()
	out, err := s.Apply(t.Context(), f, p, b)
	if err != nil {
		t.Fatalf("apply batch %s: %v", b.ID, err)
	}
	return out
}

// persist repeats Apply while its error is transient, as a flush does.
func persist(t testing.TB, s *sql.Store, f flush.Fence, p *row.Plan, b flush.Batch) flush.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		out, err := s.Apply(ctx, f, p, b)
		if err == nil {
			return out
		}
		if !errors.Is(err, flush.ErrTransient) || ctx.Err() != nil {
			t.Fatalf("apply batch %s: %v", b.ID, err)
		}
	}
}

func wantTransient(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, flush.ErrTransient) {
		t.Fatalf("got error %v, want one that says the batch may be applied again", err)
	}
}

func wantFenced(t testing.TB, err error, epoch int64) {
	t.Helper()
	var fenced *flush.FencedError
	if !errors.As(err, &fenced) || fenced.Epoch != epoch {
		t.Fatalf("got error %v, want fenced off by epoch %d", err, epoch)
	}
}
