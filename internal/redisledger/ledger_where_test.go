package redisledger

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/job"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

// ledgerOn opens a Redis, and returns the ledger of a lock that the owner "a" holds.
func ledgerOn(t *testing.T, o redisconn.Options) *Ledger {
	t.Helper()
	store := redistest.Open(t, o)
	_, err := store.Run(t.Context(), "baton", func(c redis.Conn) (any, error) { return c.Do("SET", "baton", "a", "PX", 60_000) })
	if err != nil {
		t.Fatal(err)
	}
	return NewLedger(store, LedgerOptions{LockKey: "baton", MaxAge: time.Hour})
}

func TestALedgerIsKeptInACluster(t *testing.T) {
	t.Parallel()
	l := ledgerOn(t, redisconn.Options{Cluster: testsupport.StartCluster(t).Addresses(), ClientName: "baton-test"})
	claim(t, l, newRun("r1", 1, "a"))
	finish(t, l, ended(newRun("r1", 1, "a"), job.StateSucceeded, ""))
	if s := stateOf(t, l, "users"); s.Last == nil || s.Last.ID != "r1" {
		t.Errorf("state of the job: %+v", s)
	}
}

func TestTheDocumentedUserMayKeepALedger(t *testing.T) {
	t.Parallel()
	_, url := testsupport.StartRedisWithUser(t)
	l := ledgerOn(t, redisconn.Options{URL: url, Username: "baton", ClientName: "baton:test",
		Password: func() (string, error) { return "PASSWORD", nil }})
	claim(t, l, newRun("r1", 1, "a"))
	finish(t, l, ended(newRun("r1", 1, "a"), job.StateSucceeded, ""))
	stateOf(t, l, "users")
	if _, err := l.Runs(t.Context(), "users", 3); err != nil {
		t.Error(err)
	}
	if _, err := l.ResumeStates(t.Context(), []string{"users"}); err != nil {
		t.Error(err)
	}
	for minute := 2; minute < 4; minute++ {
		if err := l.Miss(t.Context(), newRun("", 0, "a").Term, missedAt(minute, job.ReasonOverlap)); err != nil {
			t.Error(err)
		}
	}
	if _, err := l.Pause(t.Context(), "", "by alice", time.Now()); err != nil {
		t.Error(err)
	}
	if _, err := l.Orders(t.Context(), []string{"users"}); err != nil {
		t.Error(err)
	}
}
