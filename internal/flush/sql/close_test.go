package sql_test

import (
	"context"
	"testing"
	"time"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/flush/sql/sqltest"
	"baton/internal/testsupport"
)

// closesWithin is less than the 15 s for which pgx waits to say goodbye to a server that hangs.
const closesWithin = 10 * time.Second

// A node that stops has nothing more to tell its database. Therefore a database that hangs must not delay the stop, whatever the node was
// doing.
func TestClosingDoesNotWaitForAHangingDatabase(t *testing.T) {
	for name, work := range map[string]func(context.Context, *sql.Store, *row.Plan) error{
		"batch": func(ctx context.Context, s *sql.Store, p *row.Plan) error {
			_, err := s.Apply(ctx, fence(1), p, batch("a", 0, rowOf(1, 5)))
			return err
		},
		"catalogue": func(ctx context.Context, s *sql.Store, _ *row.Plan) error {
			_, err := s.Table(ctx, "articles")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			servers(t, func(t *testing.T, db *bench) {
				db.articles()
				proxy := db.Proxy()
				s, err := open.Database(db.Driver, sql.Options{Name: "main", DSN: db.DSNThrough(proxy), TTL: 2 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				takeOver(t, s, fence(1))
				p := plan(t, s, "articles", []string{"id"}, "views")
				proxy.Hang()
				defer proxy.Unhang()
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				wantTransient(t, work(ctx, s, p))
				start := testsupport.StartStopwatch(t)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if took := start.Took(); took > closesWithin {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// A firewall forgets connections in use, one after the other. When as many connections as the pool allows are stranded and being closed,
// the next batch must still get a new connection.
func TestForgottenConnectionsDoNotUseUpThePool(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.articles()
		proxy := db.Proxy()
		stranded, strand, giveUp := 0, true, func() {}
		s := db.observing(func(step sqltest.Step) error {
			if strand && step == sqltest.StepAfterRows {
				proxy.Strand()
				stranded++
				giveUp()
			}
			return nil
		}).open(through(db, proxy), ttl(2*time.Second))
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		for try := 0; stranded < 6; try++ { // by default the pool has five connections
			if try == 30 {
				t.Fatalf("only %d connections were forgotten", stranded)
			}
			ctx, cancel := context.WithCancel(t.Context())
			giveUp = func() { time.AfterFunc(100*time.Millisecond, cancel) }
			_, err := s.Apply(ctx, fence(1), p, batch("a", 0, rowOf(1, 5)))
			cancel()
			wantTransient(t, err)
		}
		strand = false
		start := testsupport.StartStopwatch(t)
		persist(t, s, fence(1), p, batch("a", 0, rowOf(1, 5)))
		if took := start.Took(); took > closesWithin {
			t.Errorf("took %v", took)
		}
		db.expect("SELECT views FROM articles", "5")
	})
}
