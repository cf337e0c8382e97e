package doctor

import (
	"context"
	"fmt"
	"net"
	"slices"
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
		when  string
		verb  string
		args  []any
		wants []string
	}{
		{"with an empty Redis", "HSET", []any{"{another}:term", "epoch", epoch}, []string{is("apart", "other", 0), is("views", "baton", 0)}},
		{"with an older term", "HSET", []any{"{baton}:term", "epoch", epoch - 1}, []string{is("apart", "other", 0), is("views", "baton", epoch-1)}},
		{"with a lock that cannot be read", "SET", []any{"{other}:term", "x"}, nil},
		{"without it", "DEL", []any{"{other}:term"}, []string{is("apart", "other", 0), is("views", "baton", epoch-1)}},
		// A job whose lock was changed has a fence of its former lock until it runs.
		{"with a term of the other lock", "HSET", []any{"{other}:term", "epoch", epoch}, nil},
	} {
		redis.Do(step.verb, step.args...)
		if got := told(); !slices.Equal(slices.Sorted(slices.Values(got)), step.wants) {
			t.Errorf("%s: doctor says %q, want %q", step.when, got, step.wants)
		}
	}
}

// Databases that do not answer must not keep doctor from reading the fences in another database.
func TestAFenceIsFoundBesideDatabasesThatHang(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections, and nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	db, r := testsupport.SQLite(t), testsupport.StartRedis(t)
	c := configOf(r.URL())
	c.Databases = map[string]config.Database{"main": {Driver: db.Driver, DSNInline: db.DSN}}
	for i := range 31 { // many, because doctor must not find the first one by chance
		name := "main"
		if i > 0 {
			name = fmt.Sprint("silent", i)
			c.Databases[name] = config.Database{Driver: "postgres", DSNInline: "postgres://u@" + silent.Addr().String() + "/d?sslmode=disable"}
		}
		j := config.Job{Name: "of-" + name}
		j.Flush.To.Database = name
		c.Jobs = append(c.Jobs, j)
	}
	store, err := site.OpenDatabase(c, "main")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.TakeOver(t.Context(), flush.Fence{Job: "of-main", Epoch: time.Now().UnixMilli(), Owner: "theirs", NodeID: "z"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), examineWithin)
	defer cancel()
	if found := examineFences(ctx, c); len(found) != 1 || found[0].Subject != jobSubject("of-main") {
		t.Errorf("doctor says %+v", found)
	}
}
