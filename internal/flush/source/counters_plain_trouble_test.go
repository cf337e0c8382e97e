package source

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

func TestScanThatMissesCountersIsNotSealed(t *testing.T) {
	g := newRig(t)
	g.fillPlain(false, 10)
	src := plainOn(t, watched(g.store, func(step string) error {
		if step == redistest.Before("counters_seal") { // a counter that the scan did not return
			g.Do("SMOVE", "unseen", hitsIndex, "p77")
		}
		return nil
	}), PlainCountersOptions{})
	g.Do("SADD", "unseen", "p77")
	g.Do("SET", "hits:p77", 5)
	if _, _, err := src.Stage(t.Context(), "a", ""); err == nil || !strings.Contains(err.Error(), "the scan did not return") {
		t.Errorf("stage: %v", err)
	}
	if st := stageNow(t, src, "b"); st.ID != "b" || !st.Resumed || st.Size != 11 {
		t.Errorf("found %+v", st)
	}
}

func TestPermissionThatIsMissingLosesNoPlainCounter(t *testing.T) {
	shared := newRig(t)
	for _, zset := range []bool{false, true} {
		index := map[bool][]string{false: {"scard", "sismember", "sscan", "srem"}, true: {"zcard", "zscore", "zscan", "zrem"}}[zset]
		for _, missing := range append(index, "type", "hlen", "exists", "persist", "hset", "rename", "hmget", "hget", "unlink", "mget",
			"del", "hscan") {
			t.Run(missing, func(t *testing.T) {
				g := &rig{Client: testsupport.Client{T: t, Conn: shared.Conn}, redis: shared.redis}
				g.Do("FLUSHALL")
				want := g.fillPlain(zset, 50)
				g.Do("ACL", "SETUSER", "app", "reset", "on", ">pw", "~*", "+@all", "-"+missing)
				s, err := redisconn.Open(redisconn.Options{URL: g.redis.URL(), Username: "app",
					Password: func() (string, error) { return "pw", nil }})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				src := plainOn(t, s, PlainCountersOptions{PartRows: 10})
				db := newDatabase()
				for range 2 {
					_, _ = db.flush(t.Context(), src, nil)
					g.hit(zset, "p7", 100)
					want["p7"] += 100
				}
				g.Do("ACL", "SETUSER", "app", "+@all")
				db.drain(t, src)
				same(t, "counts", want, db.counts())
				g.noCounters()
			})
		}
	}
}

func TestFullRedisIsGathered(t *testing.T) {
	g := newRig(t)
	want := g.fillPlain(false, 700)
	g.Do("SET", "much", strings.Repeat("x", 4<<20))
	g.Do("CONFIG", "SET", "maxmemory", "1mb", "maxmemory-policy", "noeviction")
	if _, err := g.Conn.Do("SET", "more", "x"); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Fatalf("Redis is not full: %v", err)
	}
	db := newDatabase()
	db.drain(t, g.plain(PlainCountersOptions{PartRows: 10}))
	same(t, "counts", want, db.counts())
}

func TestGatheredCountersThatAreGoneAreReported(t *testing.T) {
	for what, spoil := range map[string]func(g *rig){
		"all of them":     func(g *rig) { g.Do("UNLINK", hitsStage) },
		"some, unsealed":  func(g *rig) { g.Do("HDEL", hitsStage, "p1"); g.Do("HDEL", hitsMeta, "parts") },
		"one, of another": func(g *rig) { g.Do("HDEL", hitsStage, "p1") },
	} {
		t.Run(what, func(t *testing.T) {
			g := newRig(t)
			g.fillPlain(false, 10)
			src := g.plain(PlainCountersOptions{})
			stageNow(t, src, "a")
			spoil(g)
			_, _, err := src.Stage(t.Context(), "b", "")
			if !errors.Is(err, staging.ErrBrokenStage) || !strings.Contains(err.Error(), "DEL "+hitsMeta) {
				t.Errorf("stage: %v", err)
			}
		})
	}
}

func TestGatheredCountersWithoutTheirIDAreNeverOverwritten(t *testing.T) {
	g := newRig(t)
	g.Do("HSET", hitsStage, "p1", 41)
	g.hit(false, "p1", 1)
	src := g.plain(PlainCountersOptions{})
	_, _, err := src.Stage(t.Context(), "new", "")
	if !errors.Is(err, staging.ErrBrokenStage) || !strings.Contains(err.Error(), "HSET "+hitsMeta+" id") {
		t.Errorf("stage: %v", err)
	}
	g.Do("HSET", hitsMeta, "id", "mended") // the remedy in the message
	db := newDatabase()
	db.drain(t, src)
	same(t, "counts", map[string]int64{"p1": 42}, db.counts())
	g.noCounters()

	// A staged index without its id has lost nothing: its counters still have their counts.
	g.Do("SADD", hitsIndex, "p2")
	g.Do("SET", "hits:p2", 5)
	db.drain(t, src)
	same(t, "counts", map[string]int64{"p1": 42, "p2": 5}, db.counts())
	g.noCounters()
}

func TestPlainCounterKeysOfTheWrongTypeAreNamed(t *testing.T) {
	g := newRig(t)
	src := g.plain(PlainCountersOptions{})
	for key, needs := range map[string]string{"changed:hits": "set or a zset", hitsIndex: "set or a zset", hitsStage: "hash",
		hitsMeta: "hash"} {
		g.Do("RPUSH", key, "x")
		err := errOf(src.Stage(t.Context(), "a", ""))
		if !errors.Is(err, staging.ErrWrongType) || !strings.Contains(err.Error(), strconv.Quote(key)+" is a list") ||
			!strings.Contains(err.Error(), needs) {
			t.Errorf("stage with a list in %s: %v", key, err)
		}
		if key != hitsMeta {
			if err := second(src.Backlog(t.Context())); !errors.Is(err, staging.ErrWrongType) {
				t.Errorf("backlog with a list in %s: %v", key, err)
			}
		}
		g.Do("DEL", key)
	}
}
