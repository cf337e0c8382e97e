package sqlstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/sqlstore"
)

// moving is a batch of shard "s" that goes from one place to the next.
func moving(from, to string, rows ...flush.Row) flush.Batch {
	b := batch("b", -1, rows...)
	b.Shard, b.Move = "s", &flush.Move{From: from, To: to}
	return b
}

func wantPositions(t *testing.T, s *sqlstore.Store, f flush.Fence, shards []string, want ...string) {
	t.Helper()
	got, err := s.Positions(t.Context(), f, shards)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("positions of %q: %q, want %q", shards, got, want)
	}
}

func TestPositionIsMovedTogetherWithTheRows(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		wantPositions(t, s, fence(1), []string{"s"}, "")
		for _, b := range []flush.Batch{moving("", "1", row(1, 5)), moving("1", "2", row(1, 5)), moving("2", "10")} {
			for _, want := range []bool{true, false} {
				if out := apply(t, s, fence(1), p, b); out.Applied != want {
					t.Errorf("%v: applied = %v", *b.Move, out.Applied)
				}
			}
			wantPositions(t, s, fence(1), []string{"s"}, b.Move.To)
		}
		db.expect("SELECT views FROM articles", "10")
		db.expect("SELECT count(*) FROM baton_ledger", "0")
	})
}

func TestMoveIsMadeOnceThroughAnUnknownOutcomeOfCommit(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		proxy := db.Proxy()
		s := db.open(through(db, proxy))
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		place := ""
		for n, c := range []struct {
			lose      func(string) <-chan struct{}
			committed bool
		}{
			// The first move inserts the position, the next ones change it.
			{proxy.LoseRequest, false}, {proxy.LoseReply, true}, {proxy.LoseRequest, false},
		} {
			b := moving(place, fmt.Sprint(n+1), row(1, 5))
			happened := c.lose("COMMIT")
			applyUntil(t, happened, s, p, b)
			if out := persist(t, s, fence(1), p, b); out.Applied == c.committed {
				t.Errorf("move %d: applied again = %v", n, out.Applied)
			}
			place = b.Move.To
			wantPositions(t, s, fence(1), []string{"s"}, place)
		}
		db.expect("SELECT views FROM articles", "15")
	})
}

// The first move of all inserts the position; its reply is lost, and nothing but the
// unique key tells that it was made.
func TestFirstMoveIsMadeOnceThoughItsReplyIsLost(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		proxy := db.Proxy()
		s := db.open(through(db, proxy))
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		happened := proxy.LoseReply("COMMIT")
		applyUntil(t, happened, s, p, moving("", "1", row(1, 5)))
		if out := persist(t, s, fence(1), p, moving("", "1", row(1, 5))); out.Applied {
			t.Error("applied twice")
		}
		db.expect("SELECT views FROM articles", "5")
	})
}

func TestBatchThatStartsElsewhereIsRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		refuse := func(b flush.Batch) {
			t.Helper()
			_, err := s.Apply(t.Context(), fence(1), p, b)
			if !errors.Is(err, flush.ErrMoved) || errors.Is(err, flush.ErrTransient) || !strings.Contains(fmt.Sprint(err), `"s"`) {
				t.Errorf("%v: %v", *b.Move, err)
			}
		}
		refuse(moving("1", "2", row(1, 5)))
		apply(t, s, fence(1), p, moving("", "3", row(1, 5)))
		refuse(moving("", "2", row(1, 5)))
		refuse(moving("2", "4", row(1, 5)))
		wantPositions(t, s, fence(1), []string{"s"}, "3")
		db.expect("SELECT views FROM articles", "5")
	})
}

// Past its check of the fence a transaction still commits. What Positions answers
// has that in it.
func TestPositionsWaitForTheTransactionInFlight(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		stop := newPause(sqlstore.StepAfterFence)
		defer stop.resume()
		writing, reading := db.open(observing(stop.observe)), db.open()
		takeOver(t, writing, fence(1))
		p := plan(t, writing, "articles", []string{"id"}, "views")
		applied := make(chan error, 1)
		go func() {
			_, err := writing.Apply(t.Context(), fence(1), p, moving("", "1", row(1, 5)))
			applied <- err
		}()
		<-stop.reached
		type answer struct {
			positions []string
			err       error
		}
		read := make(chan answer, 1)
		go func() {
			positions, err := reading.Positions(t.Context(), fence(1), []string{"s"})
			read <- answer{positions, err}
		}()
		select {
		case a := <-read:
			t.Fatalf("answered %+v while a transaction could still commit", a)
		case <-time.After(300 * time.Millisecond):
		}
		stop.resume()
		if err := <-applied; err != nil {
			t.Fatal(err)
		}
		if a := <-read; a.err != nil || !slices.Equal(a.positions, []string{"1"}) {
			t.Errorf("answered %+v", a)
		}
	})
}

func TestPositionsAreReadByWhoHoldsTheFenceOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		s := db.open()
		takeOver(t, s, fence(2))
		_, err := s.Positions(t.Context(), fence(1), []string{"s"})
		wantFenced(t, err, 2)
		wantPositions(t, s, fence(2), nil)
	})
}

// Shards are told apart, whatever they are called and however many there are.
func TestPositionsOfManyShards(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		known := []string{"s", "S", `{a}:"\'`, "straße", "\xff", strings.Repeat("x", 500), strings.Repeat("x", 500) + "y"}
		for n, shard := range known {
			b := moving("", fmt.Sprint("at ", n))
			b.Shard = shard
			apply(t, s, fence(1), p, b)
		}
		var shards, want []string
		for n := range 1200 {
			shards, want = append(shards, fmt.Sprint("unknown ", n)), append(want, "")
			if n%200 == 0 {
				shards, want = append(shards, known[n/200]), append(want, fmt.Sprint("at ", n/200))
			}
		}
		shards, want = append(shards, known[6]), append(want, "at 6")
		wantPositions(t, s, fence(1), shards, want...)
	})
}

func wantMarks(t *testing.T, s *sqlstore.Store, f flush.Fence, names []string, want ...string) {
	t.Helper()
	if got, err := s.Marks(t.Context(), f, names); err != nil || !slices.Equal(got, want) {
		t.Errorf("marks of %q: %q, %v, want %q", names, got, err, want)
	}
}

func TestMarksAreSetWithTheRows(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		b := batch("a", 0, row(1, 5))
		b.Marks = []flush.Mark{{Name: "z", Value: "7"}, {Name: "a", Value: "5"}}
		apply(t, s, fence(1), p, b)
		wantMarks(t, s, fence(1), []string{"a", "z", "m"}, "5", "7", "")
		b.ID, b.Marks = "b", []flush.Mark{{Name: "m", Value: "1"}, {Name: "a", Value: "3"}} // less than before: set all the same
		apply(t, s, fence(1), p, b)
		wantMarks(t, s, fence(1), []string{"a", "z", "m"}, "3", "7", "1")
		takeOver(t, s, fence(2))
		b.ID, b.Marks = "c", []flush.Mark{{Name: "a", Value: "9"}}
		_, err := s.Apply(t.Context(), fence(1), p, b)
		wantFenced(t, err, 2)
		wantMarks(t, s, fence(2), []string{"a"}, "3")
	})
}

func TestMoreDeadLettersThanAllowedRollTheBatchBack(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "people", []string{"id"})
		b := batch("a", 0, row(1, "Ann", 1), row(2, "much too long a name", 1), row(3, "Cid", -1), row(4, "Dan", 4))
		b.Dead = []flush.DeadLetter{{Record: `{"key":"5"}`, Error: "no number"}}
		b.DeadLimit = 2
		_, err := s.Apply(t.Context(), fence(1), p, b)
		var many *flush.TooManyDeadError
		if !errors.As(err, &many) || !errors.Is(err, flush.ErrTooManyDead) || errors.Is(err, flush.ErrTransient) {
			t.Fatalf("error %v", err)
		}
		if many.Dead != 3 || many.Limit != 2 || many.First != b.Dead[0] {
			t.Errorf("%+v", many)
		}
		for _, table := range []string{"people", "baton_dead_letter", "baton_ledger"} {
			db.expect("SELECT count(*) FROM "+table, "0")
		}
		b.DeadLimit = 3
		if out := apply(t, s, fence(1), p, b); !out.Applied || out.Rows != 2 || len(out.Dead) != 3 {
			t.Errorf("outcome %+v", out)
		}
		db.expect("SELECT id FROM people ORDER BY id", "1", "4")
	})
}
