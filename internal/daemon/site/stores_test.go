package site

import (
	"errors"
	"testing"

	"baton/internal/config"
	"baton/internal/flush"
	"baton/internal/flush/sql"
	"baton/internal/testsupport"
)

func TestADatabaseIsOpenedForTheElectionOfTheConfiguration(t *testing.T) {
	t.Parallel()
	db := testsupport.SQLite(t)
	take := func(key string) error {
		c := config.Default()
		c.Election.LockKey = key
		c.Databases = map[string]config.Database{"main": {Driver: db.Driver, DSNInline: db.DSN}}
		dbs, err := OpenDatabases(c)
		if err != nil {
			t.Fatal(err)
		}
		return errors.Join(dbs["main"].TakeOver(t.Context(), flush.Fence{Job: "users", Epoch: 1, Owner: "one"}), dbs.Close())
	}
	if err := take("theirs"); err != nil {
		t.Fatal(err)
	}
	if _, refused := errors.AsType[*sql.OtherElectionError](take("ours")); !refused {
		t.Error("a job of another election was taken over")
	}
}

func TestADatabaseHasHasAConnectionForEveryLane(t *testing.T) {
	c := config.Config{Jobs: []config.Job{
		{Flush: config.Flush{To: config.To{Database: "main"}, Lanes: 8}},
		{Flush: config.Flush{To: config.To{Database: "main"}}},
		{Flush: config.Flush{To: config.To{Database: "other"}, Lanes: 16}},
	}}
	for name, want := range map[string]int{"main": 9, "other": 16, "idle": 4} {
		if got := Connections(c, name); got != want {
			t.Errorf("%s has %d connections, want %d", name, got, want)
		}
	}
}
