package process

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// A leader that is terminated in the middle of a flush ends the run, releases the
// lock only after that, and leaves its successor to go on where it stopped.
func TestTerminationDuringAFlushHandsOverWithoutLoss(t *testing.T) {
	t.Parallel()
	const fields = 80_000
	db := testsupport.Postgres(t)
	f := newFailover(t, db)
	leader := f.settled()
	want := f.fill(fields)
	f.Await(soon, "the flush to be under way", func() bool { return parts(t, db) >= 2 })
	asked := time.Now()
	leader.Signal(syscall.SIGTERM)
	successor, began := f.term(leader, asked)
	if code := leader.Wait(soon); code != 0 {
		t.Errorf("%s ended with code %d", leader.ID, code)
	}
	done := db.Rows(t, "SELECT count(*) FROM articles")[0][0]
	if done == "0" || done == strconv.Itoa(fields) {
		t.Fatalf("%s of %d rows were written when the leader went: it was not in the middle of its flush", done, fields)
	}
	t.Logf("%s of %d rows were written; %v from SIGTERM to the successor's term", done, fields, began.Sub(asked))

	cancelled, released := f.cancelledRun(), f.event("released")
	if cancelled.IsZero() || released.Before(cancelled) {
		t.Errorf("the run ended at %v as cancelled, the lock was released at %v; want the run first", cancelled, released)
	}
	if released.After(began) {
		t.Errorf("the successor's term began %v before the release", released.Sub(began))
	}
	f.Await(soon, successor.ID+" to flush the rest", func() bool { return f.pending() == 0 })
	if got := db.Rows(t, "SELECT count(*), sum(views) FROM articles")[0]; got[0] != strconv.Itoa(fields) || got[1] != strconv.FormatInt(want, 10) {
		t.Errorf("%s rows, %s views; want %d and %d: something was lost, or counted twice", got[0], got[1], fields, want)
	}
}

// fill counts in n fields and returns their sum.
func (f failover) fill(n int) (sum int64) {
	f.t.Helper()
	args := redis.Args{"views"}
	for i := range n {
		args = args.Add(i, i)
		sum += int64(i)
	}
	if _, err := f.conn.Do("HSET", args...); err != nil {
		f.t.Fatal(err)
	}
	return sum
}

// parts is how many parts of a stage are in the ledger.
func parts(t *testing.T, db *testsupport.Database) int {
	t.Helper()
	n, err := strconv.Atoi(db.Rows(t, "SELECT count(*) FROM baton_ledger")[0][0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// pending is what waits in Redis, staged or not.
func (f failover) pending() int64 {
	f.t.Helper()
	keys, err := redis.Strings(f.conn.Do("KEYS", "*views*"))
	if err != nil {
		f.t.Fatal(err)
	}
	var n int64
	for _, key := range keys {
		if kind, err := redis.String(f.conn.Do("TYPE", key)); err != nil || kind != "hash" || key == "{"+lockKey+"}:job:views" {
			continue
		}
		length, err := redis.Int64(f.conn.Do("HLEN", key))
		if err != nil {
			f.t.Fatal(err)
		}
		n += length
	}
	return n
}

// cancelledRun is when the last run ended that was cancelled.
func (f failover) cancelledRun() time.Time {
	f.t.Helper()
	return f.newest("{"+lockKey+"}:job:views:runs", "state", "cancelled")
}

// event is when the election last came to that event.
func (f failover) event(kind string) time.Time {
	f.t.Helper()
	return f.newest("{"+lockKey+"}:events", "event", kind)
}

// newest is when the last entry with that value was added to a stream.
func (f failover) newest(stream, field, value string) time.Time {
	f.t.Helper()
	entries, err := redis.Values(f.conn.Do("XREVRANGE", stream, "+", "-"))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, entry := range entries {
		pair := entry.([]any)
		fields, err := redis.StringMap(pair[1], nil)
		if err != nil {
			f.t.Fatal(err)
		}
		if fields[field] != value {
			continue
		}
		id, _, _ := strings.Cut(string(pair[0].([]byte)), "-")
		ms, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			f.t.Fatal(err)
		}
		return time.UnixMilli(ms)
	}
	return time.Time{}
}
