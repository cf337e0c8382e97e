package sql_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/flush/sql/sqltest"
	"baton/internal/testsupport"
)

// sizes records for how many rows each query "kept_prune" asked. If fail is set, it may return an error instead of running the query.
type sizes struct {
	asked []int64
	fail  func(size int64) error
}

func (z *sizes) want(t testing.TB, want ...int64) {
	t.Helper()
	if !slices.Equal(z.asked, want) {
		t.Errorf("asked for %d rows, want %d", z.asked, want)
	}
	z.asked = nil
}

// sizing opens a store whose prunings are recorded.
func (b *bench) sizing(z *sizes, change ...func(*sql.Options)) *sql.Store {
	b.t.Helper()
	o := sql.Options{Name: "main", DSN: b.DSN, TTL: time.Minute}
	for _, c := range change {
		c(&o)
	}
	d, err := open.Dialect(b.Driver)
	if err != nil {
		b.t.Fatal(err)
	}
	sized := *d
	sized.Open = func(s sql.Setup) (sql.Database, error) {
		db, err := d.Open(s)
		return sizedDatabase{db, z}, err
	}
	s, err := sql.New(&sized, o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = s.Close() })
	return s
}

type sizedDatabase struct {
	sql.Database
	z *sizes
}

func (d sizedDatabase) Session(ctx context.Context) (sql.Session, error) {
	s, err := d.Database.Session(ctx)
	return sizedSession{s, d.z}, err
}

type sizedSession struct {
	sql.Session
	z *sizes
}

func (s sizedSession) Run(ctx context.Context, tasks ...sql.Task) error {
	if last := tasks[len(tasks)-1]; last.Query == "kept_prune" {
		size := last.Args[len(last.Args)-1].(int64)
		s.z.asked = append(s.z.asked, size)
		if s.z.fail != nil {
			if err := s.z.fail(size); err != nil {
				return err
			}
		}
	}
	return s.Session.Run(ctx, tasks...)
}

// expired inserts kept rows whose time is over.
func (b *bench) expired(rows int) {
	b.t.Helper()
	var values []string
	for i := range rows {
		values = append(values, fmt.Sprintf(
			`('', 'j', 'people', '{"id":%d}', '{}', 'missing', 1, '2020-01-01 00:00:00', '2020-01-02 00:00:00')`, i))
	}
	b.Exec(b.t, "INSERT INTO baton_deleted (lock_key, job, table_name, row_key, old_row, why, epoch, at, keep_until) VALUES "+
		strings.Join(values, ", "))
}

// Long rows take long to delete. A trigger stands for a time limit of the server that allows only some rows in one statement.
func TestPruneKeptDeletesFewerRowsAfterATimeout(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		z := &sizes{}
		s := db.sizing(z)
		db.expired(16)
		db.allowDeletions(3)
		if n, err := s.PruneKept(t.Context()); err != nil || n != 16 {
			t.Errorf("pruned %d, %v", n, err)
		}
		db.expect("SELECT count(*) FROM baton_deleted", "0")
		z.want(t, 1000, 100, 10, 1, 2, 3, 4, 1, 2, 3, 3, 3) // 4 has timed out, so no statement asks for 4 again

		db.expired(1)
		db.allowDeletions(0)
		n, err := s.PruneKept(t.Context())
		if n != 0 || err == nil || strings.Count(err.Error(), "the oldest row could not be deleted") != 1 {
			t.Errorf("pruned %d, %v", n, err)
		}
		z.want(t, 1000, 100, 10, 1)
	})
}

// Another transaction holds the oldest row, here an undeletion. The pruning waits for it a few times, and then ends.
func TestPruneKeptGivesUpWaitingForALockedRow(t *testing.T) {
	whileUndeleting(t, func(t *testing.T, db *bench, _ func()) {
		z := &sizes{}
		_, err := db.sizing(z, ttl(2*time.Second)).PruneKept(t.Context())
		wantTransient(t, err)
		if !strings.Contains(err.Error(), "another transaction may hold a lock, or") {
			t.Error(err)
		}
		if db.Driver == "sqlite" && strings.Contains(err.Error(), "unknown") { // the transaction has not begun
			t.Error(err)
		}
		if db.Driver != "sqlite" { // there BEGIN already waits
			z.want(t, 1000, 100, 10, 1)
		}
	})
}

// The end of a term cancels the context. The time limits of this store are longer than the test.
func TestCancelledContextEndsAPruningThatWaits(t *testing.T) {
	whileUndeleting(t, func(t *testing.T, db *bench, _ func()) {
		s := db.open(ttl(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := s.PruneKept(ctx)
			ended <- err
		}()
		if err := testsupport.Receive(t, "the pruning ends", ended); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v does not say that the context ended", err)
		}
	})
}

// A pruning that waits continues when the other transaction has ended.
func TestPruneKeptWaitsForALockedRow(t *testing.T) {
	whileUndeleting(t, func(t *testing.T, db *bench, commit func()) {
		s := db.open()
		ended := make(chan error, 1)
		go func() {
			n, err := s.PruneKept(t.Context())
			if err == nil && n != 1 {
				err = fmt.Errorf("pruned %d rows", n)
			}
			ended <- err
		}()
		select {
		case err := <-ended:
			t.Fatalf("the pruning did not wait: %v", err)
		case <-time.After(300 * time.Millisecond): // a pruning that does not wait has ended by now
		}
		commit()
		if err := testsupport.Receive(t, "the pruning ends", ended); err != nil {
			t.Error(err)
		}
	})
}

// whileUndeleting runs a test while the transaction of an undeletion holds the only kept row, whose time is over. The function
// commit lets that transaction end.
func whileUndeleting(t *testing.T, test func(t *testing.T, db *bench, commit func())) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30)")
		stop := newPause(sqltest.StepAfterFence)
		defer stop.resume()
		s := db.leading()
		apply(t, s, fence(1), plan(t, s, "people", []string{"id"}), keeping(batch("a", -1, gone(3, 1))))
		db.Exec(t, "UPDATE baton_deleted SET keep_until = at")
		k, holder := db.kept(s), db.observing(stop.observe).open(ttl(time.Hour))
		done := make(chan error, 1)
		go func() { done <- holder.Undelete(t.Context(), []flush.Fence{fence(1)}, k) }()
		testsupport.Receive(t, "the undeletion is about to commit", stop.reached)
		test(t, db, stop.resume)
		stop.resume()
		if err := testsupport.Receive(t, "the undeletion ends", done); err != nil {
			t.Error(err)
		}
	})
}

// Timeouts have a number of their own, so a pruning that also succeeds now and then ends too.
func TestPruneKeptEndsAfterSomeTimeouts(t *testing.T) {
	db := prepared(t, testsupport.SQLite)
	allowed := int64(999)
	z := &sizes{fail: func(size int64) error {
		if size > allowed {
			allowed = size / 2
			return context.DeadlineExceeded
		}
		return nil
	}}
	s := db.sizing(z)
	db.expired(20000)
	n, err := s.PruneKept(t.Context())
	if err == nil || !strings.Contains(err.Error(), "8 statements have timed out, so the remaining rows stay for now") {
		t.Errorf("pruned %d, %v", n, err)
	}
	db.expect("SELECT count(*) FROM baton_deleted", fmt.Sprint(20000-n))
	if n == 0 {
		t.Error("pruned no row")
	}
}

// A lock that another transaction held for a while must not slow down the whole pruning.
func TestPruneKeptAsksAgainForManyRowsAfterALock(t *testing.T) {
	db := prepared(t, testsupport.SQLite)
	locked, z := 3, &sizes{}
	z.fail = func(int64) error {
		if locked--; locked >= 0 {
			return context.DeadlineExceeded
		}
		return nil
	}
	s := db.sizing(z)
	for _, most := range []int{4000, 110} { // statements: more than 11,000 of 9 rows, if the number does not grow; the second time no lock
		db.Exec(t, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 103000) "+
			"INSERT INTO baton_deleted (lock_key, job, table_name, row_key, old_row, why, epoch, at, keep_until) "+
			"SELECT '', 'j', 'people', i, '{}', 'missing', 1, '2020-01-01 00:00:00', '2020-01-02 00:00:00' FROM n")
		z.asked = nil
		if n, err := s.PruneKept(t.Context()); err != nil || n != 103000 {
			t.Errorf("pruned %d, %v", n, err)
		}
		if len(z.asked) > most || slices.Max(z.asked) > 1000 {
			t.Errorf("%d statements, of at most %d rows", len(z.asked), slices.Max(z.asked))
		}
	}
}

// Only a timeout is a reason to delete fewer rows. After any other error the pruning ends at once.
func TestPruneKeptEndsAtAnErrorThatIsNoTimeout(t *testing.T) {
	db := prepared(t, testsupport.SQLite)
	z := &sizes{fail: func(int64) error { return io.ErrUnexpectedEOF }}
	_, err := db.sizing(z).PruneKept(t.Context())
	wantTransient(t, err)
	if strings.Contains(err.Error(), "the oldest row") {
		t.Error(err)
	}
	z.want(t, 1000)
}

// allowDeletions makes the server refuse a statement that deletes more than this number of kept rows, with the error of a timeout.
func (b *bench) allowDeletions(most int) {
	b.t.Helper()
	if b.Driver == "mysql" { // the time of a statement does not change while the statement runs
		b.Exec(b.t, "DROP TRIGGER IF EXISTS slow")
		b.Exec(b.t, fmt.Sprintf("CREATE TRIGGER slow BEFORE DELETE ON baton_deleted FOR EACH ROW BEGIN "+
			"IF NOT (@began <=> NOW(6)) THEN SET @began = NOW(6), @deleted = 0; END IF; SET @deleted = @deleted + 1; "+
			"IF @deleted > %d THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1969, MESSAGE_TEXT = 'timeout'; END IF; END", most))
		return
	}
	b.Exec(b.t, fmt.Sprintf("CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+
		"IF (SELECT count(*) FROM gone) > %d THEN RAISE EXCEPTION 'timeout' USING ERRCODE = '57014'; END IF; RETURN NULL; END $$", most))
	b.Exec(b.t, "CREATE OR REPLACE TRIGGER slow AFTER DELETE ON baton_deleted REFERENCING OLD TABLE AS gone "+
		"FOR EACH STATEMENT EXECUTE FUNCTION slow()")
}
