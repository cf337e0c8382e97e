package daemon

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/daemon/epochs"
	"baton/internal/daemon/site"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/testsupport"
)

func TestALockThatComesAndGoesFasterThanItIsLeftIsLeftOnce(t *testing.T) {
	t.Parallel()
	r := startReloading(t, configFor(testsupport.StartRedis(t).URL()))
	r.leads()
	there := r.marking("a", "@hourly", "0")
	there.Lock = "locks-a"
	for range 3 {
		r.reload(there)
		r.reload()
	}
	await(t, "the lock to be left", func() bool { return len(r.snapshot().Locks) == 0 })
	time.Sleep(2 * idleLook) // whoever else has waited for that has done so
	there.Schedule = "@every 1s"
	r.reload(there)
	r.awaitMark("a begins", 1)
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

func TestTheEndDoesNotWaitForDatabasesThatAReloadHasReplaced(t *testing.T) {
	c := configFor(testsupport.StartRedis(t).URL())
	c.Databases = map[string]config.Database{"main": {Driver: "sqlite", DSNInline: testsupport.SQLite(t).DSN}}
	r := startReloading(t, c)
	r.leads()
	r.config.Databases = map[string]config.Database{"main": {Driver: "sqlite", DSNInline: testsupport.SQLite(t).DSN}}
	r.reload()
	began := testsupport.StartStopwatch(t)
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if took := began.Took(); took > testsupport.Paced(2*time.Second) {
		t.Errorf("the end took %v", took)
	}
}

// keeping is a configuration of jobs into databases, as a reload leaves it.
func keeping(before inventory, dbs site.Databases, jobs ...string) inventory {
	i := inventory{databases: dbs, tasks: make([]task, len(jobs))}
	for at, database := range jobs {
		i.tasks[at].Config.Flush.To.Database = database
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
		first := keeping(inventory{}, site.Databases{"main": old, "other": other}, "main", "other")
		second := keeping(first, first.databases, "main", "other") // one of its jobs is another one
		third := keeping(second, site.Databases{"main": latest, "other": other}, "main", "other")
		first.tasks[0].busy.Add(1)  // a run that outlives two configurations
		second.tasks[1].busy.Add(1) // one that does not end, into a database that stays
		over := make(chan struct{})
		go second.retire(third, over, zap.NewNop())

		time.Sleep(time.Minute)
		synctest.Wait()
		if err := old.Ping(t.Context()); err != nil {
			t.Errorf("it was closed under a run: %v", err)
		}
		first.tasks[0].busy.Add(-1)
		time.Sleep(idleLook)
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

func TestTheStartWaitsForASilentDatabaseOnceForAllLocks(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := configFor(testsupport.StartRedis(t).URL())
	c.Databases = map[string]config.Database{"main": {Driver: "postgres", DSNInline: "postgres://app@" + silent.Addr().String() + "/app?sslmode=disable"}}
	for i := range 6 {
		c.Jobs = append(c.Jobs, config.Job{Name: fmt.Sprint("j", i), Lock: fmt.Sprint("lock-", i), Schedule: "@hourly", Flush: config.Flush{
			From: config.From{Type: spec.Counters, Key: fmt.Sprint("views-", i)}, To: config.To{Database: "main", Table: "articles", Key: []string{"id"}},
			Columns: map[string]config.Column{"id": {From: "$field"}, "views": {From: "$value", Op: "add"}},
		}})
	}
	began := testsupport.StartStopwatch(t)
	r := start(t, c.WithDefaults(), nil)
	if took := began.Took(); took >= 6*epochs.AskWithin {
		t.Errorf("it took %v", took)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}
