package direct

import (
	"context"
	"errors"
	"strings"
	"testing"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redisledger"
	"baton/internal/testsupport"
)

type uncounted struct {
	flush.Source
	err error
}

func (uncounted) Name() string                             { return "articles:<id>" }
func (u uncounted) Backlog(context.Context) (int64, error) { return 0, u.err }

func TestWhatOnlyTheLeaderCountsIsItsLastCount(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	ledger := redisledger.NewLedger(redistest.Open(t, redisconn.Options{URL: server.URL()}), redisledger.LedgerOptions{LockKey: "baton"})
	add := func(epoch, n int64) {
		t.Helper()
		levels := map[string]redisledger.Level{"articles": {Backlog: n}}
		if err := ledger.AddSample(t.Context(), redisledger.Sample{NodeID: "a", Epoch: epoch, Levels: levels}); err != nil {
			t.Fatal(err)
		}
	}
	backlog := func(job string, err error) (int64, string) {
		t.Helper()
		task := tasks.Task{Config: config.Job{Name: job}, Sources: []flush.Source{uncounted{err: err}}}
		n, err := LeaderCounts(t.Context(), ledger).Backlog(t.Context(), task)
		why, ok := errors.AsType[*flush.UncountedError](err)
		if !ok {
			return n, ""
		}
		return n, why.Why
	}
	elsewhere := &flush.UncountedError{Why: "not here", Elsewhere: true}
	server.Client(t).Do("XADD", "{baton}:samples", "1-0", "epoch", "6", "levels", "articles 1 3\n") // an old sample
	if n, why := backlog("articles", elsewhere); n != 0 || !strings.Contains(why, "no leader has counted the backlog in the last 45s") {
		t.Errorf("by an old sample: %d, %q", n, why)
	}
	add(7, 77)
	add(6, 5) // a sample of a deposed leader
	if n, why := backlog("articles", elsewhere); n != 77 || why != "" {
		t.Errorf("by the leader's sample: %d, %q", n, why)
	}
	if n, why := backlog("other", elsewhere); n != 0 || why == "" {
		t.Errorf("of a job that the leader does not count: %d, %q", n, why)
	}
	if n, why := backlog("articles", &flush.UncountedError{Why: "refused"}); n != 0 || why != "refused" {
		t.Errorf("of a stream that is refused here: %d, %q", n, why)
	}
}
