package redisstore

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/job"
	"baton/internal/testsupport"
)

// DocumentedUser is the ACL user of docs/redis.md: the arguments of ACL.
func DocumentedUser(t testing.TB) []any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "redis.md"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ACL (SETUSER baton .*)$`).FindStringSubmatch(string(text))
	if line == nil {
		t.Fatal("docs/redis.md has no ACL line")
	}
	return redis.Args{}.AddFlat(strings.Fields(line[1]))
}

// StartWithUser starts a Redis whose only user with any rights, but for the test's,
// is the documented one.
func StartWithUser(t testing.TB) (*testsupport.Redis, Options) {
	t.Helper()
	r := testsupport.StartRedis(t, testsupport.RedisPassword("treasure"))
	if _, err := r.Conn().Do("ACL", DocumentedUser(t)...); err != nil {
		t.Fatal(err)
	}
	return r, Options{URL: strings.TrimSuffix(r.URL(), "/0") + "/1", Username: "baton", ClientName: "baton:test",
		Password: func() (string, error) { return "PASSWORD", nil }}
}

// Whatever is sent is granted, and nothing else.
func TestTheDocumentedUserMayDoWhatIsSentAndNoMore(t *testing.T) {
	r := testsupport.StartRedis(t)
	all, err := redis.Strings(r.Conn().Do("COMMAND", "LIST"))
	if err != nil {
		t.Fatal(err)
	}
	var granted []string
	for _, arg := range DocumentedUser(t) {
		if name, ok := strings.CutPrefix(arg.(string), "+"); ok {
			granted = append(granted, name)
		}
	}
	// What the client library sends, or what stands in the code under another name.
	sent := map[string]bool{
		"client|setname": true, "cluster|slots": true, "cluster|nodes": true, "select": true, "eval": true, "evalsha": true, "subscribe": true,
	}
	files, err := filepath.Glob("*.*")
	if err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile(`["']([A-Z]{3,})["']`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range word.FindAllStringSubmatch(string(text), -1) {
			name := strings.ToLower(m[1])
			// An answer that is a command's name, too; and what goes with a subcommand.
			if name != "readonly" && name != "cluster" && slices.Contains(all, name) {
				sent[name] = true
			}
		}
	}
	for name := range sent {
		if !slices.Contains(granted, name) {
			t.Errorf("%s is sent, and docs/redis.md does not grant it", name)
		}
	}
	for _, name := range granted {
		if !sent[name] {
			t.Errorf("docs/redis.md grants %s, which is never sent", name)
		}
	}
}

func TestTheDocumentedUserCanFlushAndRunJobs(t *testing.T) {
	t.Parallel()
	r, o := StartWithUser(t)
	store, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	conn := r.Conn()
	if _, err := conn.Do("SELECT", 1); err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, redis: r, store: store, conn: conn}
	db := newDatabase()
	want := g.fillCounters("views:3", 100)
	db.drain(t, g.counters(CountersOptions{}))
	same(t, "counts", want, db.counts)
	for _, zset := range []bool{false, true} {
		g.change(zset, "1", "one", 1)
		g.remove(zset, "2")
		db.drain(t, g.hashes(HashesOptions{}))
	}
	same(t, "rows", map[string]string{"1": "1|one|1"}, db.rows)
	if _, err := g.counters(CountersOptions{}).Backlog(t.Context()); err != nil {
		t.Error(err)
	}

	g.do("SET", "baton", "a", "PX", 60_000)
	l := NewLedger(store, LedgerOptions{LockKey: "baton", MaxAge: time.Hour})
	claim(t, l, newRun("r1", 1, "a"))
	finish(t, l, ended(newRun("r1", 1, "a"), job.StateSucceeded, ""))
	stateOf(t, l, "users")
	if _, err := l.Runs(t.Context(), "users", 3); err != nil {
		t.Error(err)
	}
	if _, err := l.Standings(t.Context(), []string{"users"}); err != nil {
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
