package daemon

import (
	"fmt"
	"net"
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/epochs"
	"baton/internal/flush/source/spec"
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
	time.Sleep(2 * idleCheck) // other reloads that waited for this have continued by then
	there.Schedule = "@every 1s"
	r.reload(there)
	r.awaitMark("a begins", 1)
	r.endsWell()
}

func TestTheEndDoesNotWaitForDatabasesThatAReloadHasReplaced(t *testing.T) {
	c := configFor(testsupport.StartRedis(t).URL())
	c.Databases = map[string]config.Database{"main": {Driver: "sqlite", DSNInline: testsupport.SQLite(t).DSN}}
	r := startReloading(t, c)
	r.leads()
	r.config.Databases = map[string]config.Database{"main": {Driver: "sqlite", DSNInline: testsupport.SQLite(t).DSN}}
	r.reload()
	r.endsWell()
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
	r.endsWell()
}
