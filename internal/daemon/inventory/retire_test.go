package inventory

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"baton/internal/daemon/site"
	"baton/internal/daemon/work"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/testsupport"
)

// keeping returns the inventory of jobs that write to databases, as a reload makes it.
func keeping(before Inventory, dbs site.Databases, jobs ...string) Inventory {
	i := Inventory{Databases: dbs, Tasks: make([]work.Task, len(jobs))}
	for at, database := range jobs {
		i.Tasks[at].Config.Flush.To.Database = database
	}
	i.countUses(before)
	return i
}

func TestADatabaseIsClosedWhenTheLastRunThatUsesItHasEnded(t *testing.T) {
	dsn := testsupport.SQLite(t).DSN
	synctest.Test(t, func(t *testing.T) {
		open := func() *sql.Store {
			db, err := open.Database("sqlite", sql.Options{Name: "main", DSN: dsn, TTL: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			return db
		}
		old, other, latest := open(), open(), open()
		first := keeping(Inventory{}, site.Databases{"main": old, "other": other}, "main", "other")
		second := keeping(first, first.Databases, "main", "other") // one of its jobs has been replaced
		third := keeping(second, site.Databases{"main": latest, "other": other}, "main", "other")
		endFirst := first.Tasks[0].Begin() // a run that lasts longer than two configurations
		second.Tasks[1].Begin()            // a run that does not end; its database stays
		over := make(chan struct{})
		go second.Retire(third, over, zap.NewNop())

		time.Sleep(time.Minute)
		synctest.Wait()
		if err := old.Ping(t.Context()); err != nil {
			t.Errorf("it was closed under a run: %v", err)
		}
		endFirst()
		time.Sleep(checkEvery)
		synctest.Wait()
		if old.Ping(t.Context()) == nil {
			t.Error("it stays open, because a run into another one goes on")
		}
		for _, db := range []*sql.Store{other, latest} {
			if err := errors.Join(db.Ping(t.Context()), db.Close()); err != nil {
				t.Errorf("one in use: %v", err)
			}
		}
	})
}

func TestTheEndWaitsForNoRunOfADatabaseThatWasReplaced(t *testing.T) {
	dsn := testsupport.SQLite(t).DSN
	synctest.Test(t, func(t *testing.T) {
		db, err := open.Database("sqlite", sql.Options{Name: "main", DSN: dsn, TTL: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		old := keeping(Inventory{}, site.Databases{"main": db}, "main")
		time.AfterFunc(time.Hour, old.Tasks[0].Begin())
		over := make(chan struct{})
		close(over)
		began := time.Now()
		old.Retire(keeping(old, site.Databases{}), over, zap.NewNop())
		if took := time.Since(began); took != 0 {
			t.Errorf("the end took %v", took)
		}
		if db.Ping(t.Context()) == nil {
			t.Error("the database stays open")
		}
	})
}
