package source

import (
	"errors"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

// If Redis refuses a command of a script, the earlier commands are not undone.
func TestPermissionThatIsMissingLeavesNothingHalfDone(t *testing.T) {
	for _, missing := range []string{"type", "hlen", "persist", "hset", "rename", "hmget", "hget", "unlink", "del"} {
		t.Run(missing, func(t *testing.T) {
			g := newRig(t)
			want := g.fillCounters("views:3", 50)
			g.Do("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-"+missing)
			s, err := redisconn.Open(redisconn.Options{URL: g.redis.URL(), Username: "app",
				Password: func() (string, error) { return "pw", nil }})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			src := countersOn(t, s, CountersOptions{PartRows: 10})
			db := newDatabase()
			_, _ = db.flush(t.Context(), src, nil)
			g.Do("ACL", "SETUSER", "app", "+@all")
			db.drain(t, src)
			same(t, "counts", want, db.counts())
			g.nothingLeft()
		})
	}
}

// A Redis whose memory is full still executes RENAME and UNLINK.
func TestFullRedisIsFlushed(t *testing.T) {
	g := newRig(t)
	want := g.fillCounters("views:3", 50)
	g.Do("SET", "much", strings.Repeat("x", 4<<20))
	g.Do("CONFIG", "SET", "maxmemory", "1mb", "maxmemory-policy", "noeviction")
	if _, err := g.Conn.Do("SET", "more", "x"); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Fatalf("Redis is not full: %v", err)
	}
	db := newDatabase()
	db.drain(t, g.counters(CountersOptions{PartRows: 10}))
	same(t, "counts", want, db.counts())
}

func TestStageWithoutItsIDIsNeverOverwritten(t *testing.T) {
	g := newRig(t)
	g.Do("HSET", viewsStage, "a", 41)
	g.Do("HSET", "views:3", "a", 1)
	_, _, err := g.counters(CountersOptions{}).Stage(t.Context(), "new", "")
	if !errors.Is(err, staging.ErrBrokenStage) || !strings.Contains(err.Error(), "HSET "+viewsMeta) {
		t.Errorf("stage: %v", err)
	}
	if got := g.Str("HGET", viewsStage, "a"); got != "41" {
		t.Errorf("the stage was changed: %s", got)
	}
	// This is the remedy in the message.
	g.Do("HSET", viewsMeta, "id", "mended", "parts", 1)
	db := newDatabase()
	db.drain(t, g.counters(CountersOptions{}))
	same(t, "counts", map[string]int64{"a": 42}, db.counts())
}

func TestIDWithoutItsStageIsReported(t *testing.T) {
	g := newRig(t)
	src := g.counters(CountersOptions{})
	g.Do("HSET", "views:3", "a", 1)
	stageNow(t, src, "a")
	g.Do("UNLINK", viewsStage) // for example evicted
	g.Do("HSET", "views:3", "a", 1)
	_, _, err := src.Stage(t.Context(), "b", "")
	if !errors.Is(err, staging.ErrBrokenStage) || !strings.Contains(err.Error(), "DEL "+viewsMeta) {
		t.Errorf("stage: %v", err)
	}
	g.Do("DEL", viewsMeta)
	if st := stageNow(t, src, "b"); st.ID != "b" {
		t.Errorf("after the remedy: %+v", st)
	}
}

func TestCounterKeyOfTheWrongTypeIsNamed(t *testing.T) {
	g := newRig(t)
	src := g.counters(CountersOptions{})
	g.Do("RPUSH", "views:3", "x")
	for what, err := range map[string]error{
		"stage":   errOf(src.Stage(t.Context(), "a", "")),
		"backlog": second(src.Backlog(t.Context())),
	} {
		if !errors.Is(err, staging.ErrWrongType) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for _, says := range []string{`"views:3" is a list`, "a hash", `job "views"`, "configuration"} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v does not say %q", what, err, says)
			}
		}
	}
	// The stage has the wrong type, because the job had another kind before.
	g.Do("DEL", "views:3")
	g.Do("SADD", viewsStage, "x")
	g.Do("HSET", viewsMeta, "id", "old", "parts", 0)
	if err := errOf(src.Stage(t.Context(), "a", "")); !errors.Is(err, staging.ErrWrongType) || !strings.Contains(err.Error(), viewsStage) {
		t.Errorf("stage of a set: %v", err)
	}
}

func TestForeignKeyInTheStagesPlaceIsNamed(t *testing.T) {
	g := newRig(t)
	g.Do("HSET", "views:3", "a", 1)
	g.Do("SET", viewsMeta, "x")
	err := errOf(g.counters(CountersOptions{}).Stage(t.Context(), "a", ""))
	if !errors.Is(err, staging.ErrWrongType) || !strings.Contains(err.Error(), viewsMeta) {
		t.Errorf("stage: %v", err)
	}
	if n := g.Num("HLEN", "views:3"); n != 1 {
		t.Error("the live key was staged without an id")
	}
}

func errOf(_ flush.Stage, _ bool, err error) error { return err }
func second(_ int64, err error) error              { return err }

func TestRedisThatIsAwayIsAnError(t *testing.T) {
	g := newRig(t)
	g.Do("HSET", "views:3", "a", 1)
	src := g.counters(CountersOptions{})
	st := stageNow(t, src, "a")
	g.redis.Kill()
	yield := func(flush.Page) error { return nil }
	for what, err := range map[string]error{
		"stage":   errOf(src.Stage(t.Context(), "b", "")),
		"backlog": second(src.Backlog(t.Context())),
		"read":    src.Read(t.Context(), st, yield),
		"discard": src.Discard(t.Context(), st),
	} {
		var reply redis.Error
		if err == nil || errors.As(err, &reply) || errors.Is(err, flush.ErrStaleStage) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
