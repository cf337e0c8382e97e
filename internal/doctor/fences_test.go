package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/flush"
	"baton/internal/testsupport"
)

// Two installations have one database and one lock key, but each has its own Redis. doctor of the second one says so before its first run.
func TestAFenceOfALeaderThatRedisDoesNotKnowIsFound(t *testing.T) {
	t.Parallel()
	db, r := testsupport.SQLite(t), testsupport.StartRedis(t)
	redis := r.Client(t)
	c := configOf(r.URL())
	c.Databases = map[string]config.Database{"main": {Driver: db.Driver, DSNInline: db.DSN}}
	c.Jobs = []config.Job{{Name: "report", Command: []string{"true"}}}
	for name, lock := range map[string]string{"views": "", "apart": "other"} {
		j := config.Job{Name: name, Lock: lock}
		j.Flush.To.Database = "main"
		c.Jobs = append(c.Jobs, j)
	}
	told := func() (all []string) {
		for _, f := range Examine(t.Context(), c, Options{}) {
			if strings.Contains(f.What, "its fence") {
				all = append(all, fmt.Sprintf("%s: %s: %s", f.Severity, f.Subject, f.What))
				if !strings.HasSuffix(f.Remedy, flush.UnknownLeader) {
					t.Errorf("the remedy is %q", f.Remedy)
				}
			}
		}
		return all
	}
	if got := told(); len(got) != 0 {
		t.Errorf("before the first run: %q", got)
	}
	store, err := site.OpenDatabase(c, "main")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	epoch := time.Now().UnixMilli()
	for _, job := range []string{"views", "apart"} {
		if err := store.TakeOver(t.Context(), flush.Fence{Job: job, Epoch: epoch, Owner: "theirs", NodeID: "z"}); err != nil {
			t.Fatal(err)
		}
	}
	is := func(job, lock string, last int64) string {
		return fmt.Sprintf("warning: job %q: its fence in database \"main\" has epoch %d, and the last epoch of lock %q in this Redis is %d",
			job, epoch, lock, last)
	}
	for _, step := range []struct {
		when           string
		term, epoch    any
		wants, without string
	}{
		{"with an empty Redis", "{another}:term", epoch, is("views", "baton", 0), ""},
		{"with an older term", "{baton}:term", epoch - 1, is("views", "baton", epoch-1), is("views", "baton", 0)},
		{"with a term of that epoch", "{baton}:term", epoch, is("apart", "other", 0), "views"},
		{"with a term of the other lock, too", "{other}:term", epoch, "", "its fence"},
	} {
		redis.Do("HSET", step.term, "epoch", step.epoch)
		got := strings.Join(told(), "\n")
		if !strings.Contains(got, step.wants) || step.without != "" && strings.Contains(got, step.without) {
			t.Errorf("%s: doctor says %q, want %q without %q", step.when, got, step.wants, step.without)
		}
	}
}
