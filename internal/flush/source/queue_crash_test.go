package source

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// queue is a list or a stream under test, with the records that were added to it and the expected table.
type queue struct {
	kind   string
	g      *rig
	mu     sync.Mutex
	added  int
	counts map[string]int64  // of the list
	rows   map[string]string // of the stream
}

func bothQueues(t *testing.T, g *rig, f func(t *testing.T, make func() *queue)) {
	for _, kind := range []string{"list", "stream"} {
		t.Run(kind, func(t *testing.T) {
			f(t, func() *queue {
				g.Do("FLUSHALL")
				return &queue{kind: kind, g: g, counts: map[string]int64{}, rows: map[string]string{}}
			})
		})
	}
}

// add adds n records on the caller's connection.
func (q *queue) add(c redis.Conn, n int) error {
	for range n {
		q.mu.Lock()
		q.added++
		i := q.added
		q.mu.Unlock()
		if q.kind == "list" {
			id := fmt.Sprint(i % 50)
			if _, err := c.Do("RPUSH", "orders", item(id, i)); err != nil {
				return err
			}
			q.mu.Lock()
			q.counts[id] += int64(i)
			q.mu.Unlock()
			continue
		}
		id, err := redis.String(c.Do("XADD", "events", "*", "n", i))
		if err != nil {
			return err
		}
		q.mu.Lock()
		q.rows[id] = fmt.Sprintf("%s|%d", id, i)
		q.mu.Unlock()
	}
	return nil
}

func (q *queue) source(store *redisconn.Store, rows int, observe func(string) error) flush.Source {
	store = watched(store, observe)
	if q.kind == "list" {
		return listOn(q.g.T, store, ListOptions{PartRows: rows, BatchBytes: 1 << 10})
	}
	zero := time.Duration(0)
	return streamOn(q.g.T, store, StreamOptions{PageRows: rows, BatchBytes: 1 << 10, Retain: &zero})
}

// check compares the table with the expected one, and checks that nothing is left in Redis.
func (q *queue) check(t *testing.T, what string, db *database) {
	t.Helper()
	same(t, "sums "+what, q.counts, db.counts())
	same(t, "rows "+what, q.rows, db.rows())
	if len(db.dead()) > 0 {
		t.Errorf("dead letters %s: %v", what, db.dead())
	}
	if q.kind == "list" {
		q.g.nothingLeft()
	} else if n := q.g.Num("XLEN", "events"); n != 1 {
		t.Errorf("%s the stream has %d entries, want its anchor", what, n)
	}
}

func TestCrashAtAnyStepOfAListOrStreamIsResumedExactly(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	bothQueues(t, g, func(t *testing.T, fresh func() *queue) {
		names := map[string]bool{}
		var q *queue
		add := func(n int) {
			if err := q.add(g.Conn, n); err != nil {
				t.Fatal(err)
			}
		}
		crashAtEveryStep(t, names, func(_ *database, observe func(string) error) flush.Source {
			q = fresh()
			add(120)
			return q.source(g.store, 50, observe)
		}, func(db *database, when string) {
			add(30)
			db.drain(t, q.source(g.store, 40, nil))
			q.check(t, when, db)
		})
		crashedAt(t, names, map[string][]string{
			"list":   {"list_stage", "HMGET", "LRANGE", "list_trim", "stage_discard"},
			"stream": {"MULTI", "XRANGE", "stream_trim"},
		}[q.kind]...)
	})
}

func TestConnectionCutAtAnyStepOfAListOrStreamIsResumedExactly(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.loadScripts()
	p := g.redis.Proxy()
	store := openStore(t, g.redis.URLThrough(p))
	for name, strike := range map[string]func(){"a cut": p.Cut, "a lost reply": func() { p.LoseNextReply() }} {
		bothQueues(t, g, func(t *testing.T, fresh func() *queue) {
			strikeAtEveryStep(t, name, strike, func(db *database, observe func(string) error) (flush.Source, func(string)) {
				q := fresh()
				if err := q.add(g.Conn, 120); err != nil {
					t.Fatal(err)
				}
				return q.source(store, 50, observe), func(when string) { q.check(t, when, db) }
			})
		})
	}
}

func TestNothingIsLostOfListsAndStreamsWhileProducersGoOn(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	bothQueues(t, g, func(t *testing.T, fresh func() *queue) {
		rnd := seeded(t)
		q, db, stop := fresh(), newDatabase(), make(chan struct{})
		var producers sync.WaitGroup
		for range 2 {
			c := g.redis.Conn()
			producers.Go(func() {
				if err := q.add(c, testsupport.Often(4000)); err != nil {
					t.Error(err)
				}
			})
		}
		go func() { producers.Wait(); close(stop) }()
		flushUnder(t, rnd, db, stop, func(observe func(string) error) flush.Source {
			return q.source(g.store, 1+rnd.IntN(200), observe)
		})
		q.check(t, "in the end", db)
	})
}

// A deposed leader that was frozen at any step continues when its successor has flushed everything, and when new records have come. It must
// neither write nor remove records of the successor.
func TestDeposedReaderOfAListOrStreamDoesNoHarm(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	bothQueues(t, g, func(t *testing.T, fresh func() *queue) {
		for n, reached := 1, 1; reached >= n; n++ {
			q, db := fresh(), newDatabase()
			if err := q.add(g.Conn, 120); err != nil {
				t.Fatal(err)
			}
			var steps atomic.Int64 // an aborted request may still be on its way when the flush has ended
			wakes := locked(func(string) error {
				if steps.Add(1) != int64(n) {
					return nil
				}
				if err := q.add(g.Conn, 30); err != nil {
					return err
				}
				// Its writer is not frozen with its reader, and no fence stops it. Only the ledger and the position protect the table from
				// it.
				for more := true; more; {
					var err error
					if more, err = db.flush(t.Context(), q.source(g.store, 40, nil), nil); err != nil && !beaten(err) {
						return err
					}
				}
				return q.add(g.Conn, 20)
			})
			if _, err := db.flush(t.Context(), q.source(g.store, 50, wakes), nil); err != nil && !beaten(err) {
				t.Fatalf("woken at step %d: %v", n, err)
			}
			db.drain(t, q.source(g.store, 40, nil))
			q.check(t, fmt.Sprintf("woken at step %d", n), db)
			reached = int(steps.Load())
		}
	})
}

// beaten reports whether another process was faster.
func beaten(err error) bool {
	return errors.Is(err, flush.ErrStaleStage) || errors.Is(err, flush.ErrMoved) || errors.Is(err, flush.ErrGap)
}
