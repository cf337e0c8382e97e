package sql_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/flush/source"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/sqltest"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

// If a run with some number of lanes has applied a part of a stage, a run with any other number of lanes can finish the stage. No change is
// lost or added twice.
func TestLanesChangeWhileAStageIsHalfApplied(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	everywhere(t, func(t *testing.T, db *bench) {
		for i, kind := range []string{"counters", "list", "stream"} {
			t.Run(kind, func(t *testing.T) {
				server := testsupport.StartRedis(t)
				store := redistest.Open(t, redisconn.Options{URL: server.URL()})
				if i == 0 {
					db.articles()
				}
				db.Exec(t, "DELETE FROM articles")
				l := &laneChange{t: t, db: db, store: store, conn: server.Conn(), kind: kind, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
				half := 0
				for _, lanes := range []int{3, 1, 4, 2, 1, 3} {
					l.produce(400)
					l.cutRun(lanes)
					added := db.Rows(t, "SELECT COALESCE(sum(views), 0) FROM articles")[0][0]
					if added != "0" && added != strconv.Itoa(l.total()) {
						half++
					}
				}
				l.run(l.db.open(), 2)
				if half == 0 {
					t.Fatalf("seed %d: no run was cut when its stage was half applied", seed)
				}
				l.compare(seed)
			})
		}
	})
}

// laneChange is a job whose number of lanes changes, with the expected content of its table.
type laneChange struct {
	t     *testing.T
	db    *bench
	store *redisconn.Store
	conn  redis.Conn
	kind  string
	rng   *rand.Rand
	want  [100]int
	ids   int
}

func (l *laneChange) total() (sum int) {
	for _, n := range l.want {
		sum += n
	}
	return sum
}

// produce writes the given number of changes to Redis.
func (l *laneChange) produce(changes int) {
	l.t.Helper()
	for range changes {
		id, n := l.rng.IntN(len(l.want)), 1+l.rng.IntN(9)
		l.want[id] += n
		args := map[string][]any{
			"counters": {"HINCRBY", "changes", id, n},
			"list":     {"RPUSH", "changes", fmt.Sprintf(`{"id":%d,"n":%d}`, id, n)},
			"stream":   {"XADD", "changes", "*", "id", id, "n", n},
		}[l.kind]
		if _, err := l.conn.Do(args[0].(string), args[1:]...); err != nil {
			l.t.Fatal(err)
		}
	}
}

// cutRun flushes with the given number of lanes, and ends at a step of one of the first transactions, as if the process died.
func (l *laneChange) cutRun(lanes int) {
	l.t.Helper()
	steps := []sqltest.Step{sqltest.StepAfterRows, sqltest.StepAfterFence, sqltest.StepAfterCommit}
	step, left := steps[l.rng.IntN(len(steps))], int64(2+l.rng.IntN(2))
	var passed atomic.Int64
	observed := l.db.observing(func(at sqltest.Step) error {
		if at == step {
			passed.Add(1)
		}
		if passed.Load() >= left {
			return fmt.Errorf("dead since the passing %d of %s", left, step)
		}
		return nil
	})
	if err := l.flush(observed.open(lanesOf(lanes)), lanes); err == nil {
		l.t.Fatalf("the run over %d lanes was not cut", lanes)
	}
}

func lanesOf(lanes int) func(*sql.Options) { return func(o *sql.Options) { o.MaxConns = lanes + 1 } }

func (l *laneChange) run(s *sql.Store, lanes int) {
	l.t.Helper()
	if err := l.flush(s, lanes); err != nil {
		l.t.Fatal(err)
	}
}

func (l *laneChange) flush(s *sql.Store, lanes int) error {
	l.t.Helper()
	described, err := source.Describe(source.Options{Job: "lanes-" + l.kind, Type: l.kind, Key: "changes", Rows: 15, Lanes: lanes})
	if err != nil {
		l.t.Fatal(err)
	}
	columns := map[string]mapping.ColumnSpec{"id": {}, "views": {From: "n", Op: "add"}}
	if l.kind == "counters" {
		columns = map[string]mapping.ColumnSpec{"id": {From: row.InputField}, "views": {From: row.InputValue}}
	}
	cfg := flush.Config{
		Job: "lanes-" + l.kind, NodeID: "n", Sink: s, Lanes: lanes, Retry: flush.Retry{Attempts: 1},
		Mapping: mapping.Spec{Table: "articles", Key: []string{"id"}, Columns: columns},
		NewID:   func() (string, error) { l.ids++; return fmt.Sprint(l.kind, l.ids), nil },
	}
	described.Configure(&cfg, l.store)
	p, err := flush.New(cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	_, err = p.Run(l.t.Context(), term{})
	return err
}

func (l *laneChange) compare(seed uint64) {
	l.t.Helper()
	var got, want []string
	for _, r := range l.db.Rows(l.t, "SELECT id, views FROM articles ORDER BY id") {
		got = append(got, r[0]+": "+r[1])
	}
	for id, n := range l.want {
		if n > 0 {
			want = append(want, fmt.Sprint(id, ": ", n))
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		l.t.Errorf("seed %d: the table has\n%v\nwritten were\n%v", seed, got, want)
	}
	l.db.expect("SELECT count(*) FROM baton_dead_letter", "0")
}
