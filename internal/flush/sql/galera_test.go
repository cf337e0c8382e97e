package sql_test

import (
	dbsql "database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/sql/sqltest"
	"baton/internal/testsupport"
)

func TestAGaleraCluster(t *testing.T) {
	t.Parallel()
	testsupport.NeedsDialect(t, testsupport.DialectMariaDB)
	g := testsupport.StartGalera(t, 2)
	one, two := &bench{Database: g.Members[0], t: t}, &bench{Database: g.Members[1], t: t}
	t.Run("first take-overs at once", func(t *testing.T) { takeOverThroughBoth(t, one, two) })
	t.Run("a server without the majority is away", func(t *testing.T) { cutOffIsAway(t, g, two) })
	t.Run("a deposed leader does not commit", func(t *testing.T) { deposedDoesNotCommit(t, one, two) })
}

// cutOffIsAway checks that Ping fails for a server that is cut off from the cluster. Such a server still answers plain pings, and a leader
// would otherwise try its statements there for ever.
func cutOffIsAway(t *testing.T, g *testsupport.Galera, two *bench) {
	s := two.open()
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	g.Cut(1)
	testsupport.Await(t, "the server to be away", func() bool { return errors.Is(s.Ping(t.Context()), flush.ErrTransient) })
	g.Mend(1)
	testsupport.Await(t, "the server to be there again", func() bool { return s.Ping(t.Context()) == nil })
}

// takeOverThroughBoth takes over a job through both servers at the same time. This also creates baton's tables.
func takeOverThroughBoth(t *testing.T, one, two *bench) {
	var wg sync.WaitGroup
	for i, db := range []*bench{one, two} {
		s := db.open()
		wg.Go(func() {
			for range 100 {
				err := s.TakeOver(t.Context(), fence(int64(i+1)))
				switch {
				case err == nil || errors.Is(err, flush.ErrFenced) && i == 0:
					return
				case !errors.Is(err, flush.ErrTransient):
					t.Errorf("server %d: %v", i, err)
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			t.Errorf("server %d: it does not take over", i)
		})
	}
	wg.Wait()
	for _, db := range []*bench{one, two} {
		db.expect("SELECT epoch FROM baton_fence", "2")
	}
}

// On a Galera cluster a takeover through one server does not wait for a batch that runs on another server. If that other server lags
// behind, the batch can even read the old fence and commit there.
func deposedDoesNotCommit(t *testing.T, one, two *bench) {
	one.articles()
	one.Exec(t, "CREATE TABLE slow (id int PRIMARY KEY)")
	p := newPause(sqltest.StepAfterFence)
	deposed := one.observing(p.observe).open()
	next := two.open()
	takeOver(t, deposed, fence(11))
	writes := plan(t, deposed, "articles", []string{"id"}, "views")
	ended := make(chan error, 1)
	go func() {
		_, err := deposed.Apply(t.Context(), fence(11), writes, batch("a", 0, rowOf(1, 5)))
		ended <- err
	}()
	<-p.reached
	// The first server lags behind: from here on it receives the commits of the other server but cannot apply them.
	unlock := one.holdTable("slow")
	two.Exec(t, "INSERT INTO slow VALUES (1)")
	takeOver(t, next, fence(12))
	p.resume()
	time.Sleep(200 * time.Millisecond) // the deposed leader has time to commit
	unlock()
	if err := <-ended; !errors.Is(err, flush.ErrTransient) {
		t.Errorf("the deposed leader's batch: %v", err)
	}
	two.expect("SELECT count(*) FROM articles", "0")
	_, err := deposed.Apply(t.Context(), fence(11), writes, batch("a", 0, rowOf(1, 5)))
	wantFenced(t, err, 12)
	apply(t, next, fence(12), plan(t, next, "articles", []string{"id"}, "views"), batch("a", 0, rowOf(1, 5)))
	two.expect("SELECT views FROM articles", "5")
}

// holdTable prevents all writes to a table until unlock is called.
func (b *bench) holdTable(name string) (unlock func()) {
	b.t.Helper()
	db, err := dbsql.Open("mysql", b.DSN)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(b.t.Context(), "LOCK TABLES "+name+" READ"); err != nil {
		b.t.Fatal(err)
	}
	return func() {
		if _, err := db.ExecContext(b.t.Context(), "UNLOCK TABLES"); err != nil {
			b.t.Error(err)
		}
	}
}
