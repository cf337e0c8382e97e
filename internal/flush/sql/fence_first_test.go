package sql_test

import (
	"testing"
	"time"

	"baton/internal/flush/sql/sqltest"
)

// lockWaits returns the number of transactions of this database that wait for another transaction.
func (b *bench) lockWaits() string {
	b.t.Helper()
	return b.Rows(b.t, map[string]string{
		"postgres": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
		"mysql": "SELECT count(*) FROM information_schema.innodb_trx AS x JOIN information_schema.processlist AS p ON p.id = " +
			"x.trx_mysql_thread_id WHERE p.db = database() AND x.trx_state = 'LOCK WAIT'",
	}[b.Driver])[0][0]
}

// The job is new, so both leaders insert its fence. The older leader inserts second, and waits for the row of the newer leader.
func TestOlderTakerOfANewJobDoesNotOverwriteTheNewerOne(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		stop := newPause(sqltest.StepTakeOverBeforeCommit)
		defer stop.resume()
		newer, older := db.observing(stop.observe).open(ttl(time.Minute)), db.open(ttl(time.Minute))
		taken := make(chan error, 1)
		go func() { taken <- newer.TakeOver(t.Context(), fence(2)) }()
		<-stop.reached
		refused := make(chan error, 1)
		go func() { refused <- older.TakeOver(t.Context(), fence(1)) }()
		// InnoDB renews this information only if no query has read it for 100 ms.
		for limit := time.Now().Add(time.Minute); db.lockWaits() == "0"; time.Sleep(150 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatal("the older leader does not wait for the newer one's row")
			}
		}
		stop.resume()
		if err := <-taken; err != nil {
			t.Fatal(err)
		}
		wantFenced(t, <-refused, 2)
		db.expect("SELECT epoch, owner FROM baton_fence", "2|owner-2")
	})
}
