package sql_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

// moving returns a batch that moves the position of shard "s".
func moving(from, to string, rows ...row.Row) flush.Batch {
	b := batch("b", -1, rows...)
	b.Shard, b.Move = "s", &flush.Move{From: from, To: to}
	return b
}

func wantPositions(t *testing.T, s *sql.Store, f flush.Fence, shards []string, want ...string) {
	t.Helper()
	got, err := s.Positions(t.Context(), f, shards)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("positions of %q: %q, want %q", shards, got, want)
	}
}

func TestMoveIsMadeOnceThroughAnUnknownOutcomeOfCommit(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		proxy := db.Proxy()
		s := db.leading(through(db, proxy))
		p := plan(t, s, "articles", []string{"id"}, "views")
		place := ""
		for n, c := range []struct {
			lose      func(string) <-chan struct{}
			committed bool
		}{
			// The first move inserts the position. The later moves change it.
			{proxy.LoseRequest, false}, {proxy.LoseReply, true}, {proxy.LoseRequest, false},
		} {
			b := moving(place, fmt.Sprint(n+1), rowOf(1, 5))
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

// The position of a large Cluster contains a place in every master.
func TestAPositionMayBeLong(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s, p := db.flushing("articles", []string{"id"}, "views")
		place := ""
		for n := range 3 {
			to := strings.Repeat("0123456789", 3000) + fmt.Sprint(n)
			if out := persist(t, s, fence(1), p, moving(place, to, rowOf(1, 5))); !out.Applied {
				t.Error("the move was not made")
			}
			place = to
			wantPositions(t, s, fence(1), []string{"s"}, place)
		}
	})
}

// A batch was committed, and a new process, which does not know that, applies it again. The result must be the same if some of the batch's
// rows are refused.
func TestMoveThatWasMadeIsFoundAlsoWithRefusedRows(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		first := db.open()
		takeOver(t, first, fence(1))
		var rows []row.Row
		for id := range 20 {
			rows = append(rows, rowOf(id, "x", 5-id%10))
		}
		for n, from := range []string{"", "1"} { // the first batch inserts the position, the second one moves it
			b := moving(from, fmt.Sprint(n+1), rows...)
			for _, s := range []*sql.Store{first, db.open()} {
				out, err := s.Apply(t.Context(), fence(1), plan(t, s, "people", []string{"id"}), b)
				if err != nil || out.Applied != (s == first) {
					t.Errorf("move from %q: applied = %v, %v", from, out.Applied, err)
				}
			}
			wantPositions(t, first, fence(1), []string{"s"}, fmt.Sprint(n+1))
		}
	})
}

// The first move inserts the position, and its reply is lost. Only the unique key shows that the move was made.
func TestFirstMoveIsMadeOnceThoughItsReplyIsLost(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		proxy := db.Proxy()
		s := db.leading(through(db, proxy))
		p := plan(t, s, "articles", []string{"id"}, "views")
		happened := proxy.LoseReply("COMMIT")
		applyUntil(t, happened, s, p, moving("", "1", rowOf(1, 5)))
		if out := persist(t, s, fence(1), p, moving("", "1", rowOf(1, 5))); out.Applied {
			t.Error("applied twice")
		}
		db.expect("SELECT views FROM articles", "5")
	})
}

func wantMarks(t *testing.T, s *sql.Store, f flush.Fence, names []string, want ...string) {
	t.Helper()
	if got, err := s.Marks(t.Context(), f, names); err != nil || !slices.Equal(got, want) {
		t.Errorf("marks of %q: %q, %v, want %q", names, got, err, want)
	}
}
