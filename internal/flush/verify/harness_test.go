package verify_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/source"
	"baton/internal/flush/source/existing"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/flush/verify"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// lab is a job with its Redis and its database.
type lab struct {
	*testing.T
	db      *testsupport.Database
	server  *testsupport.Redis
	redis   redis.Conn
	store   *redisconn.Store
	sink    *sql.Store
	options source.Options
	config  flush.Config
	flush   *flush.Pipeline
	ids     int
}

// term is a leadership that does not end.
type term struct{}

func (term) Owner() string                                   { return "owner" }
func (term) Epoch() int64                                    { return 7 }
func (term) Raise(_ context.Context, n int64) (int64, error) { return n + 1, nil }

// everywhere runs a test with every kind of database.
func everywhere(t *testing.T, test func(t *testing.T, db *testsupport.Database)) {
	for name, open := range map[string]func(testing.TB) *testsupport.Database{
		"postgres": testsupport.Postgres, "mariadb": testsupport.MariaDB, "sqlite": testsupport.SQLite,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// newLab returns a job whose table exists already.
func newLab(t *testing.T, db *testsupport.Database, o source.Options, to mapping.Spec) *lab {
	t.Helper()
	server := testsupport.StartRedis(t)
	store, err := redisconn.Open(redisconn.Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := open.Database(db.Driver, sql.Options{Name: "main", DSN: db.DSN})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = sink.Close(), store.Close() })
	o.Job = o.Type // each job of a database has its own fence
	l := &lab{T: t, db: db, server: server, redis: server.Conn(), store: store, sink: sink, options: o}
	described, err := source.Describe(o)
	if err != nil {
		t.Fatal(err)
	}
	l.config = flush.Config{Job: o.Job, NodeID: "a", Sink: sink, Mapping: to, NewID: l.newID}
	described.Configure(&l.config, store)
	if l.flush, err = flush.New(l.config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.flush.Release() })
	return l
}

func (l *lab) newID() (string, error) {
	l.ids++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", l.ids), nil
}

func (l *lab) do(command string, args ...any) {
	l.Helper()
	if _, err := l.redis.Do(command, args...); err != nil {
		l.Fatalf("%s: %v", command, err)
	}
}

// run flushes once.
func (l *lab) run() {
	l.Helper()
	if _, err := l.flush.Run(l.Context(), term{}); err != nil {
		l.Fatal(err)
	}
}

// flushed runs the job's flush when the comparison waits for a run.
func (l *lab) flushed(ctx context.Context, _ time.Time) (bool, error) {
	_, err := l.flush.Run(ctx, term{})
	return true, err
}

func (l *lab) keys(inputs []string) (verify.Source, error) {
	sources, err := l.config.NewSources(nil)
	if err != nil {
		return nil, err
	}
	return existing.Open(l.store, l.options, inputs, sources[0], l.newID)
}

// verify compares.
func (l *lab) verify(o verify.Options) verify.Result {
	l.Helper()
	if o.Flushed == nil {
		o.Flushed = l.flushed
	}
	c, err := verify.New(l.Context(), l.config, l.keys, o)
	if err != nil {
		l.Fatal(err)
	}
	state, err := c.Run(l.Context(), verify.State{})
	if err != nil {
		l.Fatal(err)
	}
	return state.Result
}

// wants checks the counts of a result: records, missing, different, extra, unfit.
func (l *lab) wants(when string, r verify.Result, want ...int64) {
	l.Helper()
	if got := []int64{r.Records, r.Missing, r.Different, r.Extra, r.Unfit}; fmt.Sprint(got) != fmt.Sprint(want) || r.Moving != 0 {
		l.Errorf("%s: records, missing, different, extra, unfit are %v, and %d move; want %v and none: %+v", when, got, r.Moving, want, r)
	}
}
