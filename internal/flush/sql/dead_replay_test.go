package sql_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/sqltest"
)

// oneLetter stores one dead letter and returns its replay.
func (b *bench) oneLetter(s *sql.Store, p *row.Plan, r row.Row) sql.Replay {
	b.t.Helper()
	takeOver(b.t, s, fence(1))
	batchID := fmt.Sprint("letter ", time.Now().UnixNano())
	apply(b.t, s, fence(1), p, flush.Batch{ID: batchID, Dead: []row.DeadLetter{{Record: row.RecordJSON(p.Inputs, r.Record), Error: "bad"}}})
	id := b.Rows(b.t, "SELECT id FROM baton_dead_letter WHERE batch_id = '"+batchID+"'")
	return sql.Replay{ID: id[0][0], Job: "j", Plan: p, Row: r}
}

func replay(t *testing.T, s *sql.Store, r sql.Replay, want error) {
	t.Helper()
	if err := s.Replay(t.Context(), r); !errors.Is(err, want) {
		t.Errorf("replay: %v, want %v", err, want)
	}
}

func TestReplayedSumIsAddedOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		db.Exec(t, "INSERT INTO articles VALUES (1, 10)")
		s := db.open()
		p := plan(t, s, "articles", []string{"id"}, "views")
		r := db.oneLetter(s, p, rowOf(1, -3))
		r.Sum = true
		replay(t, s, r, nil)
		replay(t, s, r, sql.ErrReplayed)
		db.expect("SELECT id, views FROM articles", "1|7")
		db.expect("SELECT count(*) FROM baton_dead_letter", "0")
		db.expect("SELECT count(*) FROM baton_position WHERE position LIKE 'replay%'", "0") // the replay is not recorded as a newest batch
		replacing := rowOf(1, 5)
		replacing.Replace = true
		r = db.oneLetter(s, p, replacing)
		r.Sum = true // Sum does not allow a deletion before the insert
		replay(t, s, r, sql.ErrRowThere)
		db.expect("SELECT id, views FROM articles", "1|7")
	})
}

func TestRecordThatStillDoesNotFitStaysADeadLetter(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s := db.open()
		r := db.oneLetter(s, plan(t, s, "people", []string{"id"}), rowOf(1, "far too long a name", 1))
		for range 2 {
			replay(t, s, r, sql.ErrStillRefused)
		}
		db.expect("SELECT count(*) FROM baton_dead_letter", "1")
		r.Row = rowOf(1, "mended", 1)
		replay(t, s, r, nil)
		db.expect("SELECT * FROM people", "1|mended|1")
		db.expect("SELECT count(*) FROM baton_dead_letter", "0")
	})
}

func TestReplayTouchesNoRowThatIsThereUnlessAsked(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		db.create("CREATE UNIQUE INDEX one_name ON people (name)", "CREATE UNIQUE INDEX one_name ON people (name)",
			"CREATE UNIQUE INDEX one_name ON people (name)")
		db.Exec(t, "INSERT INTO people VALUES (1, 'newer', 1), (2, 'newer 2', 2)")
		s := db.open()
		p := plan(t, s, "people", []string{"id"})
		replacing := rowOf(1, "older", 7)
		replacing.Replace = true
		for what, r := range map[string]row.Row{"upsert": rowOf(1, "older", 7), "replace": replacing, "delete": gone(3, 1)} {
			letter := db.oneLetter(s, p, r)
			replay(t, s, letter, sql.ErrRowThere)
			db.expect("SELECT * FROM people ORDER BY id", "1|newer|1", "2|newer 2|2")
			letter.Overwrite = true
			replay(t, s, letter, nil)
			want := "1|older|7"
			if what == "delete" {
				db.expect("SELECT id FROM people", "2")
			} else {
				db.expect("SELECT * FROM people WHERE id = 1", want)
			}
			db.Exec(t, "DELETE FROM people WHERE id = 1")
			db.Exec(t, "INSERT INTO people VALUES (1, 'newer', 1)")
		}
		// A replay may insert a row with a new key, and may delete a row that does not exist.
		replay(t, s, db.oneLetter(s, p, rowOf(3, "third", 3)), nil)
		replay(t, s, db.oneLetter(s, p, gone(3, 4)), nil)
		// The row conflicts by a unique value, but no row has its key.
		replay(t, s, db.oneLetter(s, p, rowOf(5, "newer", 3)), sql.ErrStillRefused)
		db.expect("SELECT id FROM people ORDER BY id", "1", "2", "3")
		db.expect("SELECT count(*) FROM baton_dead_letter", "1")
	})
}

// isThere finds a row by its key, whatever the types of the key columns are.
func TestRowThatIsThereIsFoundByKeysOfEveryType(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create(`CREATE TABLE k (a numeric(10,2), b bytea, c timestamptz, d uuid, e boolean, f date, n int,
			PRIMARY KEY (a, b, c, d, e, f))`,
			"CREATE TABLE k (a decimal(10,2), b varbinary(20), c datetime(6), d char(36), e boolean, f date, n int, PRIMARY KEY (a, b, "+
				"c, d, e, f))",
			`CREATE TABLE k (a numeric, b blob, c text, d text, e boolean, f text, n int, PRIMARY KEY (a, b, c, d, e, f))`)
		s := db.open()
		p := plan(t, s, "k", []string{"a", "b", "c", "d", "e", "f"})
		at := time.Date(2024, 2, 29, 12, 30, 0, 123456000, time.UTC)
		r := rowOf(row.String(row.KindNumeric, "1.50"), row.String(row.KindBytes, "\x00\xff'"), at,
			row.String(row.KindUUID, "0b0e9a1c-7d1c-4d0e-9f7a-3a2b1c0d9e8f"), true, row.Date(at), 1)
		replay(t, s, db.oneLetter(s, p, r), nil)
		replay(t, s, db.oneLetter(s, p, r), sql.ErrRowThere)
	})
}

func TestReplayedInsertionIsInsertedOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.Exec(t, "CREATE TABLE log (line varchar(20))")
		s := db.open()
		p := plan(t, s, "log", nil)
		r := db.oneLetter(s, p, rowOf("hello"))
		replay(t, s, r, nil)
		replay(t, s, r, sql.ErrReplayed)
		db.expect("SELECT line FROM log", "hello")
	})
}

func TestDroppedLetterIsNotReplayed(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s := db.open()
		p := plan(t, s, "articles", []string{"id"}, "views")
		r := db.oneLetter(s, p, rowOf(1, 1))
		r.Sum = true
		other := r
		other.Job = "another"
		replay(t, s, other, sql.ErrNoLetter)
		if n, err := s.DropLetters(t.Context(), []string{r.ID}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		replay(t, s, r, sql.ErrNoLetter)
		db.expect("SELECT count(*) FROM articles", "0")
		db.expect("SELECT count(*) FROM baton_ledger WHERE batch_id LIKE 'replay%'", "0")
	})
}

// Several operators replay and drop the same letters while the leader flushes the same
// rows.
func TestLettersAreReplayedOnceWhoeverElseIsThere(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s := db.open()
		p := plan(t, s, "articles", []string{"id"}, "views")
		const letters = 20
		var replays []sql.Replay
		for i := range letters {
			r := db.oneLetter(s, p, rowOf(i%3, 1))
			r.Sum = true
			replays = append(replays, r)
		}
		var done, dropped atomic.Int64
		var all sync.WaitGroup
		for range 3 {
			operator := db.open()
			all.Go(func() {
				for _, r := range replays {
					err := operator.Replay(t.Context(), r)
					switch {
					case err == nil:
						done.Add(1)
					case !errors.Is(err, sql.ErrReplayed) && !errors.Is(err, sql.ErrNoLetter):
						t.Errorf("replay: %v", err)
					}
				}
			})
		}
		all.Go(func() {
			for i := letters - 1; i >= letters/2; i-- {
				n, err := s.DropLetters(t.Context(), []string{replays[i].ID})
				if err != nil && !errors.Is(err, flush.ErrTransient) {
					t.Errorf("drop: %v", err)
				}
				dropped.Add(n)
			}
		})
		leader := db.open()
		all.Go(func() {
			for i := range 20 {
				persist(t, leader, fence(1), p, batch("flush", i, rowOf(0, 100), rowOf(1, 100), rowOf(2, 100)))
			}
		})
		all.Wait()
		if done.Load()+dropped.Load() < letters {
			t.Errorf("%d replayed and %d dropped of %d", done.Load(), dropped.Load(), letters)
		}
		db.expect("SELECT count(*) FROM baton_dead_letter", "0")
		db.expect("SELECT sum(views) FROM articles", fmt.Sprint(6000+letters-dropped.Load()))
	})
}

// The process is killed, or the answer is lost, at every step. After that either the letter exists or its row exists. After another replay
// the row has been written once.
func TestReplayThatEndsAnywhereHappensOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		for n, step := range []sqltest.Step{
			sqltest.StepBeforeBegin, sqltest.StepAfterBegin, sqltest.StepAfterLedger, sqltest.StepAfterRows, sqltest.StepAfterDead,
			sqltest.StepAfterCommit,
		} {
			ctx, kill := context.WithCancel(t.Context())
			s := db.observing(func(at sqltest.Step) error {
				if at == step {
					kill()
					return errors.New("killed")
				}
				return nil
			}).open()
			calm := db.open()
			p := plan(t, calm, "articles", []string{"id"}, "views")
			r := db.oneLetter(calm, p, rowOf(n, 1))
			r.Sum = true
			if err := s.Replay(ctx, r); err == nil {
				t.Fatalf("killed at %q: it went through", step)
			}
			left := len(db.Rows(t, "SELECT id FROM baton_dead_letter"))
			there := len(db.Rows(t, fmt.Sprintf("SELECT id FROM articles WHERE id = %d", n)))
			if left+there != 1 {
				t.Errorf("killed at %q: %d letters and %d rows", step, left, there)
			}
			if err := calm.Replay(t.Context(), r); err != nil && !errors.Is(err, sql.ErrReplayed) {
				t.Errorf("after a death at %q: %v", step, err)
			}
			db.expect(fmt.Sprintf("SELECT views FROM articles WHERE id = %d", n), "1")
			db.expect("SELECT count(*) FROM baton_dead_letter", "0")
		}
	})
}

// The request of COMMIT or its answer is lost. The replay finds out which of the two was lost.
func TestReplayWhoseCommitWasNotAnsweredHappensOnce(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		calm := db.open()
		p := plan(t, calm, "articles", []string{"id"}, "views")
		for n, lose := range []string{"request", "reply"} {
			proxy := db.Proxy()
			s := db.open(through(db, proxy))
			r := db.oneLetter(calm, p, rowOf(n, 1))
			r.Sum = true
			var happened <-chan struct{}
			if lose == "request" {
				happened = proxy.LoseRequest("COMMIT")
			} else {
				happened = proxy.LoseReply("COMMIT")
			}
			replay(t, s, r, nil)
			<-happened
			db.expect(fmt.Sprintf("SELECT views FROM articles WHERE id = %d", n), "1")
			db.expect("SELECT count(*) FROM baton_dead_letter", "0")
		}
	})
}
