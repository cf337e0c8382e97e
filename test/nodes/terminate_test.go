package nodes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// A leader that is terminated in the middle of a flush ends the run, releases the
// lock only after that, and leaves its successor to go on where it stopped.
func TestTerminationDuringAFlushHandsOverWithoutLoss(t *testing.T) {
	t.Parallel()
	const fields = 40_000
	db := testsupport.Postgres(t)
	f := newFailover(t, db, untilReleased)
	leader := f.settled()
	// Behind the first part a flush waits until the test lets it go on.
	db.Exec(t, `CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN IF EXISTS (SELECT 1 FROM articles) THEN PERFORM pg_advisory_xact_lock_shared(1); END IF; RETURN NULL; END'`)
	db.Exec(t, "CREATE TRIGGER stop BEFORE INSERT ON articles FOR EACH STATEMENT EXECUTE FUNCTION stop()")
	goOn := holdAdvisoryLock(t, db, 1)
	want := f.fill(fields)
	f.Await(soon, "the flush to be in its middle", func() bool { return waitsForTable(t, db) })
	commands := f.monitor()
	last := epoch(leader)
	leader.Signal(syscall.SIGTERM)
	successor, _ := f.term(last)
	if code := leader.Wait(soon); code != 0 {
		t.Errorf("%s ended with code %d", leader.ID, code)
	}
	done := db.Rows(t, "SELECT count(*) FROM articles")[0][0]
	if done == "0" || done == strconv.Itoa(fields) {
		t.Fatalf("%s of %d rows were written when the leader went: it was not in the middle of its flush", done, fields)
	}
	t.Logf("%s of %d rows were written when the leader went", done, fields)
	goOn()

	// Both are written by scripts, one after the other as Redis shows them.
	recorded := awaitCommand(t, commands, `"XADD" "{baton}:job:views:runs"`, `"DEL" "baton"`)
	// Slots that came while the flush went on, and the runs before it that found nothing: these are written
	// together, at the end of the term.
	for strings.Contains(recorded, `"state" "missed"`) || strings.Contains(recorded, `"rows" "0"`) && strings.Contains(recorded, "succeeded") {
		recorded = awaitCommand(t, commands, `"XADD" "{baton}:job:views:runs"`, `"DEL" "baton"`)
	}
	if !strings.Contains(recorded, "cancelled") {
		t.Errorf("the lock was released before the run had ended; or it ended as %s", recorded)
	}
	awaitCommand(t, commands, `"DEL" "baton"`)
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

// monitor passes on what Redis executes from now on, the commands of scripts too.
func (f failover) monitor() <-chan string {
	f.t.Helper()
	conn := f.server.Conn()
	if _, err := conn.Do("MONITOR"); err != nil {
		f.t.Fatal(err)
	}
	commands := make(chan string, 100_000)
	go func() {
		defer close(commands)
		for {
			line, err := redis.String(redis.ReceiveWithTimeout(conn, 0))
			if err != nil {
				return // closed at the test's end
			}
			commands <- line
		}
	}()
	return commands
}

// awaitCommand returns the next command that has one of these parts.
func awaitCommand(t *testing.T, commands <-chan string, parts ...string) string {
	t.Helper()
	var found string
	testsupport.Await(t, fmt.Sprintf("redis to execute one of %q", parts), func() bool {
		for {
			select {
			case line, open := <-commands:
				if found = line; slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(line, part) }) {
					return true
				}
				if !open {
					return false
				}
			default:
				return false
			}
		}
	})
	return found
}
