package sql_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/flush/sql/sqltest"
	"baton/internal/testsupport"
)

// pause stops a store once, at the given step, until resume is called.
type pause struct {
	at      sqltest.Step
	reached chan struct{}
	resume  func()
	used    atomic.Bool
	gate    chan struct{}
}

func newPause(at sqltest.Step) *pause {
	p := &pause{at: at, reached: make(chan struct{}), gate: make(chan struct{})}
	p.resume = sync.OnceFunc(func() { close(p.gate) })
	return p
}

func (p *pause) observe(step sqltest.Step) error {
	if step == p.at && p.used.CompareAndSwap(false, true) {
		close(p.reached)
		<-p.gate
	}
	return nil
}

// A leader is deposed in the middle of a batch. When it continues, its writes must be rolled back. On SQLite the successor waits for the
// write lock instead.
func TestDeposedLeaderRollsBackInTheMiddleOfABatch(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		for _, step := range []sqltest.Step{
			sqltest.StepAfterBegin, sqltest.StepAfterLedger, sqltest.StepAfterMove, sqltest.StepAfterRows, sqltest.StepAfterMarks,
			sqltest.StepAfterDead,
		} {
			t.Run(string(step), func(t *testing.T) {
				for _, table := range []string{"articles", "baton_fence", "baton_ledger", "baton_position", "baton_mark",
					"baton_dead_letter"} {
					db.Exec(t, "DELETE FROM "+table)
				}
				stop := newPause(step)
				defer stop.resume()
				old, successor := db.observing(stop.observe).open(), db.open()
				takeOver(t, old, fence(1))
				p := plan(t, old, "articles", []string{"id"}, "views")
				failed := make(chan error, 1)
				go func() {
					_, err := old.Apply(t.Context(), fence(1), p, throughStep(step, rowOf(1, 5)))
					failed <- err
				}()
				<-stop.reached
				takeOver(t, successor, fence(2))
				stop.resume()
				wantFenced(t, <-failed, 2)
				if out := apply(t, successor, fence(2), p, throughStep(step, rowOf(1, 5))); !out.Applied {
					t.Error("what the deposed leader wrote has stayed")
				}
				db.expect("SELECT views FROM articles", "5")
			})
		}
	})
}

// A transaction holds SQLite's only write lock from its first statement on, even before a batch has written anything.
func TestSQLiteTransactionLocksOutATakerFromItsBeginning(t *testing.T) {
	db := &bench{Database: testsupport.SQLite(t), t: t}
	db.articles()
	stop := newPause(sqltest.StepAfterBegin)
	defer stop.resume()
	old, successor := db.observing(stop.observe).open(), db.open(ttl(time.Second))
	takeOver(t, old, fence(1))
	p := plan(t, old, "articles", []string{"id"}, "views")
	applied := make(chan error, 1)
	go func() {
		_, err := old.Apply(t.Context(), fence(1), p, batch("a", -1, rowOf(1, 5)))
		applied <- err
	}()
	<-stop.reached
	wantTransient(t, successor.TakeOver(t.Context(), fence(2)))
	stop.resume()
	if err := <-applied; err != nil {
		t.Fatal(err)
	}
	takeOver(t, successor, fence(2))
}

// Transactions of one leader do not wait for each other at the fence. Transactions of one shard wait once: the first batch of a stage
// records the stage as the newest one.
func TestTransactionsOfOneLeaderShareTheFence(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		stop := newPause(sqltest.StepAfterFence)
		defer stop.resume()
		s := db.observing(stop.observe).open(ttl(time.Minute)) // long enough for a busy machine
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		first := make(chan error, 1)
		go func() {
			_, err := s.Apply(t.Context(), fence(1), p, batch("a", 0, rowOf(1, 5)))
			first <- err
		}()
		<-stop.reached
		other := batch("b", 0, rowOf(2, 5))
		other.Shard = "another"
		apply(t, s, fence(1), p, other)
		stop.resume()
		if err := <-first; err != nil {
			t.Fatal(err)
		}
	})
}

// A leader freezes inside its transaction, with a row and the fence locked. The server disconnects the leader;
// TestEveryLimitIsWithinTheLease checks after which time.
func TestFrozenLeaderIsThrownOff(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		const lease = 12 * time.Second // the limit for an idle transaction is a quarter of it
		stop := newPause(sqltest.StepAfterFence)
		defer stop.resume()
		frozen, successor := db.observing(stop.observe).open(ttl(lease)), db.open()
		takeOver(t, frozen, fence(1))
		p := plan(t, frozen, "articles", []string{"id"}, "views")
		thawed := make(chan error, 1)
		go func() {
			_, err := frozen.Apply(t.Context(), fence(1), p, batch("a", 0, rowOf(1, 5)))
			thawed <- err
		}()
		select {
		case <-stop.reached:
		case err := <-thawed:
			t.Fatalf("it ended before it froze: %v", err)
		}
		takeOver(t, successor, fence(2))
		persist(t, successor, fence(2), p, batch("a", 0, rowOf(1, 5)))
		stop.resume() // the leader was frozen until now
		if err := <-thawed; !errors.Is(err, flush.ErrTransient) {
			t.Errorf("the frozen leader's commit: %v", err)
		}
		db.expect("SELECT views FROM articles", "5")
	})
}

// The server releases the locks of a dead leader before a successor may take over.
func TestEveryLimitIsWithinTheLease(t *testing.T) {
	var got sql.Limits
	const lease = 8 * time.Second
	d := &sql.Dialect{Open: func(s sql.Setup) (sql.Database, error) { got = s.Limits; return nil, errors.New("not opened") }}
	postgres, err := open.Dialect("postgres")
	if err != nil {
		t.Fatal(err)
	}
	d.Files = postgres.Files
	if _, err := sql.New(d, sql.Options{Name: "main", TTL: lease}); err == nil {
		t.Error("a database that cannot be opened is opened")
	}
	if min(got.Idle, got.Lock, got.Statement) <= 0 || got.Idle+max(got.Lock, got.Statement) >= lease || got.Trip > lease {
		t.Errorf("%+v with a lease of %v", got, lease)
	}
}

func TestConcurrentFirstTakeOverLeavesTheHighestEpoch(t *testing.T) {
	emptyEverywhere(t, func(t *testing.T, db *bench) {
		var wg sync.WaitGroup
		for epoch := int64(1); epoch <= 8; epoch++ {
			s := db.open()
			wg.Go(func() {
				if err := persistTakeOver(t, s, fence(epoch)); err != nil && !errors.Is(err, flush.ErrFenced) {
					t.Errorf("epoch %d: %v", epoch, err)
				}
			})
		}
		wg.Wait()
		db.expect("SELECT job, epoch, owner, node_id FROM baton_fence", "j|8|owner-8|n")
		db.expect("SELECT count(*) FROM baton_schema_version WHERE version_id = 1 AND is_applied", "1")
	})
}

// If the database is created again while baton runs, baton's tables are missing.
func TestTablesThatAreGoneAreMadeAgain(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s, p := db.flushing("articles", []string{"id"}, "views")
		apply(t, s, fence(1), p, batch("a", 0, rowOf(1, 5)))
		for table := range strings.FieldsSeq("fence ledger position mark dead_letter dead_letter_part deleted schema_version") {
			db.Exec(t, "DROP TABLE baton_"+table)
		}
		if _, err := s.Apply(t.Context(), fence(1), p, batch("b", 0, rowOf(1, 5))); err == nil || errors.Is(err, flush.ErrTransient) {
			t.Errorf("apply without our tables: %v", err)
		}
		takeOver(t, s, fence(1))
		apply(t, s, fence(1), p, batch("b", 0, rowOf(1, 5)))
		db.expect("SELECT views FROM articles", "10")
	})
}

// An administrator can create the tables beforehand.
func TestTakingOverNeedsNoRightToCreateTables(t *testing.T) {
	db := &bench{Database: kinds[0].make(t), t: t}
	takeOver(t, db.open(), fence(1))
	db.Exec(t, "CREATE ROLE writer LOGIN")
	defer db.Exec(t, "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM writer; DROP ROLE writer")
	db.Exec(t, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO writer")
	s := db.open(func(o *sql.Options) { o.DSN = strings.Replace(o.DSN, "//app@", "//writer@", 1) })
	takeOver(t, s, fence(2))
}
