package demo

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/config"
	"baton/internal/testsupport"
)

// serverAt returns a server with the given URL, for a generator.
func serverAt(url string) *server {
	return &server{config: config.Redis{URL: url}, prefix: "demo", stop: func() {}}
}

// content returns the data in Redis, in the same form as the expected content.
func content(t *testing.T, c redis.Conn, s *server) (map[string]int64, map[int64]user) {
	t.Helper()
	counts, users := map[string]int64{}, map[int64]user{}
	for shard := range shards {
		m, err := redis.Int64Map(c.Do("HGETALL", s.viewsKey(strconv.Itoa(shard))))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(counts, m)
	}
	for id := int64(1); id <= people; id++ {
		m, err := redis.StringMap(c.Do("HGETALL", s.userKey(strconv.FormatInt(id, 10))))
		if err != nil {
			t.Fatal(err)
		}
		if len(m) > 0 {
			version, _ := strconv.ParseInt(m["version"], 10, 64)
			users[id] = user{name: m["name"], note: m["note"], version: version}
		}
	}
	return counts, users
}

// The auditor trusts the generator, so the generator must know exactly which writes Redis has, even if the request or the reply of a batch
// was lost or late.
func TestGeneratorKnowsWhatRedisHasWhateverTheConnectionDoes(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	proxy := testsupport.NewProxy(t, r.Addr())
	s := serverAt(r.URLThrough(proxy))
	e := newExpected()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() { done <- newGenerator(s, syncScene(), e, 5, 4000).run(ctx) }()

	for range 4 {
		for _, trap := range []func(string) <-chan struct{}{proxy.LoseReply, proxy.LoseRequest} {
			for _, command := range []string{"EVAL", "SADD"} {
				select {
				case <-trap(command):
				case <-time.After(time.Minute):
					t.Fatalf("no %s was sent", command)
				}
			}
		}
		proxy.Cut()
		proxy.Hang()
		time.Sleep(100 * time.Millisecond)
		proxy.Unhang()
	}
	// A slow Redis executes requests later, after the generator has given them up.
	r.Freeze()
	time.Sleep(redisTimeout + time.Second)
	r.Thaw()
	thawed := e.total()
	testsupport.Await(t, "the generator to go on", func() bool {
		now := e.total()
		return now.Counters > thawed.Counters && now.Counters >= 1000 && now.Hashes >= 300
	})
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	counts, users := content(t, r.Conn(), s)
	if !maps.Equal(counts, e.counts) {
		t.Errorf("counts in Redis differ from what is expected:\n%v\n%v", counts, e.counts)
	}
	ids, err := redis.Int64s(r.Conn().Do("SMEMBERS", s.changedKey()))
	if err != nil {
		t.Fatal(err)
	}
	changed := map[int64]bool{}
	for _, id := range ids {
		changed[id] = true
	}
	deleted := 0
	for id, want := range e.users {
		if got, there := users[id]; there == want.deleted || there && got != want {
			t.Errorf("user %d in Redis is %+v, expected %+v", id, got, want)
		}
		if !changed[id] {
			t.Errorf("user %d was changed, and the index does not have it", id)
		}
		if want.deleted {
			deleted++
		}
	}
	if e.written.Counters < 1000 || e.written.Hashes < 300 || deleted == 0 {
		t.Errorf("written %+v, %d deleted: too little to tell", e.written, deleted)
	}
}

// If the outcome of a batch is unknown, the demo cannot be audited.
func TestGeneratorDoesNotGuess(t *testing.T) {
	t.Parallel()
	s := serverAt("redis://127.0.0.1:1")
	e := newExpected()
	g := newGenerator(s, syncScene(), e, 5, 4000)
	g.doubt = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := g.run(ctx); !errors.Is(err, errInDoubt) {
		t.Errorf("%v", err)
	}
	if e.total() != (amount{}) {
		t.Errorf("%+v", e.total())
	}
}

func TestEmbeddedServerLetsKeysExpire(t *testing.T) {
	t.Parallel()
	s, err := openServer(t.Context(), Options{Redis: ""}, syncScene(), t.TempDir(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	c, err := s.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	start := time.Now()
	if _, err := c.Do("SET", "k", "v", "PX", 300); err != nil {
		t.Fatal(err)
	}
	for {
		there, err := redis.Bool(c.Do("EXISTS", "k"))
		if err != nil {
			t.Fatal(err)
		}
		if !there {
			break
		}
		if time.Since(start) > time.Minute {
			t.Fatal("a key lives for ever")
		}
		time.Sleep(time.Millisecond)
	}
	if lived := time.Since(start); lived < 300*time.Millisecond-longestStep {
		t.Errorf("a lease of 300ms was over after %v", lived)
	}
}

func TestPrefixThatIsTakenIsRefused(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	s, err := openServer(t.Context(), Options{Redis: r.URL()}, syncScene(), t.TempDir(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	if _, err := openServer(t.Context(), Options{Redis: r.URL()}, syncScene(), t.TempDir(), "demo"); err == nil {
		t.Error("two runs share their keys")
	}
	c := r.Conn()
	for _, key := range []string{"{demo:lock}:term", "demo:user:1", "{demo:changed:user}:baton:stage", "other"} {
		if _, err := c.Do("SET", key, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.cleanUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if keys, err := redis.Strings(c.Do("KEYS", "*")); err != nil || len(keys) != 1 || keys[0] != "other" {
		t.Errorf("%q, %v", keys, err)
	}
}
