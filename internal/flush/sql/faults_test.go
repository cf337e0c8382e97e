package sql_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/sqltest"
	"baton/internal/testsupport"
)

var errStopped = errors.New("stopped by the test")

// stopAt makes a store call the function first when it reaches a step for the first time. The error of that function ends the transaction.
func (b *bench) stopAt(at sqltest.Step, first func() error) *bench {
	done := false
	return b.observing(func(step sqltest.Step) error {
		if step != at || done {
			return nil
		}
		done = true
		return first()
	})
}

func through(db *bench, proxy *testsupport.Proxy) func(*sql.Options) {
	return func(o *sql.Options) { o.DSN = db.DSNThrough(proxy) }
}

// throughStep returns a batch of counters, with a good row and a dead letter, whose transaction passes the given step. No batch passes all
// steps.
func throughStep(step sqltest.Step, rows ...row.Row) flush.Batch {
	b := batch(string(step), 0, rows...)
	b.Shard = string(step)
	b.Dead = []row.DeadLetter{{Record: string(step), Error: "bad"}}
	switch step {
	case sqltest.StepAfterMove:
		b.Part, b.Move = -1, &flush.Move{To: "1"}
	case sqltest.StepAfterMarks:
		b.Marks = []flush.Mark{{Name: b.Shard, Value: "1"}}
	}
	return b
}

// crashes applies a batch for every step. strike is called once at that step, and its error ends the transaction. Then crashes applies the
// same batch again.
func crashes(t *testing.T, db *bench, strike func(step sqltest.Step) error, change ...func(*sql.Options)) {
	var next atomic.Value // the step at which strike is called
	next.Store(sqltest.Step(""))
	s := db.observing(func(step sqltest.Step) error {
		if !next.CompareAndSwap(step, sqltest.Step("")) {
			return nil
		}
		return strike(step)
	}).open(change...)
	for n, step := range sqltest.Steps() {
		t.Run(string(step), func(t *testing.T) {
			next.Store(step)
			f := fence(int64(n + 1))
			if err := s.TakeOver(t.Context(), f); err != nil {
				wantTransient(t, err)
				takeOver(t, s, f)
			}
			p := plan(t, s, "articles", []string{"id"}, "views")
			b := throughStep(step, rowOf(n, 5), rowOf(1000+n, row.Integer(1)))
			_, err := s.Apply(t.Context(), f, p, b)
			if takingOver := strings.HasPrefix(string(step), "take over"); takingOver != (err == nil) {
				t.Fatalf("first try: %v", err)
			}
			if err != nil {
				wantTransient(t, err)
				persist(t, s, f, p, b)
			}
			if struck := next.Load(); struck != sqltest.Step("") {
				t.Errorf("it did not come by %q", struck)
			}
			if out := persist(t, s, f, p, b); out.Applied {
				t.Error("applied a third time")
			}
		})
	}
	steps := len(sqltest.Steps())
	db.expect("SELECT count(*), min(views), max(views) FROM articles WHERE id < 1000", textOf(steps, 5, 5))
	db.expect("SELECT count(*) FROM baton_dead_letter", textOf(steps))
	db.expect("SELECT count(*) FROM baton_ledger", textOf(steps-1))
	db.expect("SELECT count(*) FROM baton_position WHERE position = '1'", "1") // the position of the move
	db.expect("SELECT total FROM baton_mark", "1")
}

// A transaction passes its steps in their listed order, each step once.
func TestStepsComeInTheirOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		var seen []sqltest.Step
		s := db.observing(func(step sqltest.Step) error { seen = append(seen, step); return nil }).open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		apply(t, s, fence(1), p, throughStep(sqltest.StepAfterMarks, rowOf(1, 5)))
		apply(t, s, fence(1), p, throughStep(sqltest.StepAfterMove, rowOf(2, 5)))
		b := throughStep(sqltest.StepAfterRows, rowOf(3, 5))
		b.Part = -1 // without a ledger entry
		apply(t, s, fence(1), p, b)
		begin, end := []sqltest.Step{sqltest.StepBeforeBegin, sqltest.StepAfterBegin}, []sqltest.Step{
			sqltest.StepAfterDead, sqltest.StepAfterFence, sqltest.StepAfterCommit}
		want := slices.Concat([]sqltest.Step{sqltest.StepTakeOverBeforeCommit, sqltest.StepTakeOverAfterCommit},
			begin, []sqltest.Step{sqltest.StepAfterLedger, sqltest.StepAfterRows, sqltest.StepAfterMarks}, end,
			begin, []sqltest.Step{sqltest.StepAfterMove, sqltest.StepAfterRows}, end,
			begin, []sqltest.Step{sqltest.StepAfterLedger, sqltest.StepAfterRows}, end)
		if !slices.Equal(seen, want) {
			t.Errorf("came by %q,\nwant %q", seen, want)
		}
	})
}

// applyUntil applies a batch, which fails, until a fault has happened. On a busy machine the batch may reach a time limit before the fault
// happens, so it is applied repeatedly.
func applyUntil(t *testing.T, happened <-chan struct{}, s *sql.Store, p *row.Plan, b flush.Batch) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		_, err := s.Apply(t.Context(), fence(1), p, b)
		wantTransient(t, err)
		select {
		case <-happened:
			return
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing was lost on the connection; the last error is %v", err)
		}
	}
}

func textOf(numbers ...int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", "|")
}

func TestStoppedAtAnyStepAppliesExactlyOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		crashes(t, db, func(sqltest.Step) error { return errStopped })
	})
}

func TestConnectionCutAtAnyStepAppliesExactlyOnce(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		proxy := db.Proxy()
		crashes(t, db, func(step sqltest.Step) error {
			proxy.Cut()
			// At these steps no answer follows that could be lost.
			if step == sqltest.StepAfterCommit || step == sqltest.StepTakeOverAfterCommit || step == sqltest.StepBeforeBegin {
				return errStopped
			}
			return nil
		}, through(db, proxy))
	})
}

// The connection breaks between COMMIT and its answer. Whether the transaction was committed or not, applying the same batch again is
// conclusive.
func TestUnknownOutcomeOfCommitAppliesExactlyOnce(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		proxy := db.Proxy()
		s := db.leading(through(db, proxy))
		p := plan(t, s, "articles", []string{"id"}, "views")
		for _, c := range []struct {
			id        string
			lose      func(string) <-chan struct{}
			committed bool
		}{
			{"request lost", proxy.LoseRequest, false},
			{"reply lost", proxy.LoseReply, true},
		} {
			b := batch(c.id, 0, rowOf(1, 5))
			happened := c.lose("COMMIT")
			applyUntil(t, happened, s, p, b)
			if out := persist(t, s, fence(1), p, b); out.Applied == c.committed {
				t.Errorf("%s: applied again = %v", c.id, out.Applied)
			}
		}
		db.expect("SELECT views FROM articles", "10")
	})
}

// The network hangs while the old transaction holds its ledger entry. If the same batch is applied over another connection, it waits until
// the old transaction has ended.
func TestApplyingAgainWaitsForTheTransactionWithUnknownOutcome(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		proxy := db.Proxy()
		const lease = 12 * time.Second // the limit for an idle transaction is a quarter of it
		hanging := db.stopAt(sqltest.StepAfterFence, func() error {
			proxy.Hang()
			return nil
		}).open(ttl(lease), through(db, proxy))
		takeOver(t, hanging, fence(1))
		p := plan(t, hanging, "articles", []string{"id"}, "views")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		b := batch("a", 0, rowOf(1, 5))
		_, err := hanging.Apply(ctx, fence(1), p, b)
		wantTransient(t, err)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v does not say that the context ended", err)
		}
		other := db.open()
		if out := persist(t, other, fence(1), p, b); !out.Applied {
			t.Error("not applied, although COMMIT never arrived")
		}
		db.expect("SELECT views FROM articles", "5")
		proxy.Unhang()
	})
}

// applied applies a batch over a connection that hangs, and returns the error.
func applied(t *testing.T, ctx context.Context, s *sql.Store, p *row.Plan) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := s.Apply(ctx, fence(1), p, batch("a", 0, rowOf(1, 5)))
		ended <- err
	}()
	return testsupport.Receive(t, "the batch is given up", ended)
}

// The lease limits a round trip: see TestEveryLimitIsWithinTheLease.
func TestHangingDatabaseIsGivenUpWithinALease(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		proxy := db.Proxy()
		s := db.leading(ttl(4*time.Second), through(db, proxy))
		p := plan(t, s, "articles", []string{"id"}, "views")
		proxy.Hang()
		wantTransient(t, applied(t, t.Context(), s, p))
		proxy.Unhang()
		persist(t, s, fence(1), p, batch("a", 0, rowOf(1, 5)))
		db.expect("SELECT views FROM articles", "5")
	})
}

// In this test the time limit of a round trip is an hour.
func TestCancelledContextEndsAStatementThatWaits(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		proxy := db.Proxy()
		s := db.leading(ttl(time.Hour), through(db, proxy))
		p := plan(t, s, "articles", []string{"id"}, "views")
		proxy.Hang()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		wantTransient(t, applied(t, ctx, s, p))
		proxy.Unhang()
		persist(t, s, fence(1), p, batch("a", 0, rowOf(1, 5)))
		db.expect("SELECT views FROM articles", "5")
	})
}

func TestCancelledContextEndsApplyAndSaysSo(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		ctx, cancel := context.WithCancel(t.Context())
		s := db.stopAt(sqltest.StepAfterRows, func() error { cancel(); return nil }).open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		_, err := s.Apply(ctx, fence(1), p, batch("a", 0, rowOf(1, 5)))
		wantTransient(t, err)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v does not say that the context was cancelled", err)
		}
		persist(t, s, fence(1), p, batch("a", 0, rowOf(1, 5)))
		db.expect("SELECT views FROM articles", "5")
	})
}

// Another transaction holds a row of the batch for longer than the batch waits.
func TestLockedRowIsTransient(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		stop := newPause(sqltest.StepAfterRows)
		defer stop.resume()
		// The lease of the holder is so long that its transaction cannot reach a time limit before the other store has given up.
		holder, s := db.observing(stop.observe).open(ttl(time.Hour)), db.open(ttl(2*time.Second))
		takeOver(t, holder, fence(1))
		p := plan(t, holder, "articles", []string{"id"}, "views")
		done := make(chan error, 1)
		go func() {
			_, err := holder.Apply(t.Context(), fence(1), p, batch("a", 0, rowOf(1, 5)))
			done <- err
		}()
		<-stop.reached
		_, err := s.Apply(t.Context(), fence(1), p, batch("b", 0, rowOf(1, 5)))
		wantTransient(t, err)
		stop.resume()
		if err := <-done; err != nil { // the server may have ended the transaction before
			wantTransient(t, err)
		}
		persist(t, s, fence(1), p, batch("a", 0, rowOf(1, 5)))
		persist(t, s, fence(1), p, batch("b", 0, rowOf(1, 5)))
		db.expect("SELECT views FROM articles", "10")
	})
}

// Two batches lock the same rows in opposite orders.
func TestDeadlockIsTransient(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		db.Exec(t, "INSERT INTO articles VALUES (1, 0), (2, 0)")
		s, p := db.flushing("articles", []string{"id"}, "views")
		errs := make(chan error, 40)
		for n := range cap(errs) {
			rows := []row.Row{rowOf(1, 1), rowOf(2, 1)}
			if n%2 == 1 {
				rows[0], rows[1] = rows[1], rows[0]
			}
			go func() {
				_, err := s.Apply(t.Context(), fence(1), p, batch("a", n, rows...))
				errs <- err
			}()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				wantTransient(t, err)
			}
		}
		for n := range cap(errs) {
			persist(t, s, fence(1), p, batch("a", n, rowOf(1, 1), rowOf(2, 1)))
		}
		db.expect("SELECT views FROM articles ORDER BY id", textOf(cap(errs)), textOf(cap(errs)))
	})
}

func TestDatabaseThatWasRestartedIsFoundAgain(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *testsupport.Database{
		"postgres": testsupport.StartPostgres, "mariadb": testsupport.StartMariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			db := &bench{Database: start(t), t: t}
			db.articles()
			s, p := db.flushing("articles", []string{"id"}, "views")
			apply(t, s, fence(1), p, batch("a", 0, rowOf(1, 5)))
			db.Server().Kill()
			_, err := s.Apply(t.Context(), fence(1), p, batch("b", 0, rowOf(1, 5)))
			wantTransient(t, err)
			wantTransient(t, s.Ping(t.Context()))
			wantTransient(t, s.TakeOver(t.Context(), fence(1)))
			_, err = s.Table(t.Context(), "articles")
			wantTransient(t, err)
			db.Server().Restart()
			persist(t, s, fence(1), p, batch("b", 0, rowOf(1, 5)))
			if out := persist(t, s, fence(1), p, batch("a", 0, rowOf(1, 5))); out.Applied {
				t.Error("a batch from before the crash was applied again")
			}
			if err := s.Ping(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A file that cannot be written now may be writable later, like a standby that is promoted.
func TestReadOnlyDatabaseIsTransient(t *testing.T) {
	db := &bench{Database: testsupport.SQLite(t), t: t}
	s := db.open(func(o *sql.Options) { o.DSN = "file:" + o.DSN + "?mode=ro" })
	wantTransient(t, s.TakeOver(t.Context(), fence(1)))
}
