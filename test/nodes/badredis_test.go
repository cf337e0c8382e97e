package nodes

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

const (
	rightSecret = "planted-right-secret"
	wrongSecret = "planted-wrong-secret"
)

// badRedis is something that a node cannot use, and how it is mended.
type badRedis struct {
	url, redisYAML string
	mend           func()        // nil: only another configuration would
	tried          *atomic.Int32 // how often it was asked, where nothing is mended
}

// A Redis that cannot be used does not end a node: it says once what is wrong and
// what to do, in its log, on its page and by its commands, and leads as soon as
// that is done.
func TestBadRedisIsToldWithItsRemedyAndWaitedFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		start func(t *testing.T) badRedis
		want  []string
	}{
		{"unreachable", unreachable, []string{"connect to redis 127.0.0.1:", "connection refused", "is redis running there, and is the configured address right?"}},
		{"speaks HTTP", speaksHTTP, []string{"connect to redis 127.0.0.1:", "not Redis' protocol", "is the configured address right?"}},
		{"a replica", replica, []string{`lock "baton"`, "this redis is a replica: is the configured address the master's?"}},
		{"no password", noPassword, []string{"connect to redis 127.0.0.1:", "redis requires a password: set redis.password_file"}},
		{"wrong password", wrongPassword, []string{"connect to redis 127.0.0.1:", "refuses the user or password: check redis.username and redis.password_file"}},
		{"password file missing", passwordFileMissing, []string{"redis.password_file: open ", "no such file", "create it or correct the path"}},
		{"lock key of another type", wrongType, []string{`lock "baton"`, `key "baton" is a set and should be a string`, "Choose another election.lock_key, or delete the key"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bad := c.start(t)
			nodes := cluster.Start(t, cluster.Options{Nodes: 1, TTL: 10 * ttl, ElectionYAML: "attempt_timeout: 5s", LockKey: lockKey, RedisURL: bad.url, RedisYAML: bad.redisYAML})
			n := nodes.Nodes[0]
			nodes.Await(soon, "the trouble to be told", func() bool { return len(n.Lines(redisLost)) > 0 })
			told := n.Lines(redisLost)[0]
			if told.Level != "warn" {
				t.Errorf("told at level %s", told.Level)
			}
			says(t, "log", told.Text("error"), c.want)

			if healthy, ready := n.Answer("/-/healthy"), n.Answer("/-/ready"); healthy != http.StatusOK || ready != http.StatusOK {
				t.Errorf("healthy %d, ready %d; a Redis that is away is no reason to restart a node", healthy, ready)
			}
			s, ok := n.Status()
			if !ok || s.Role != "connecting" || s.Redis.OK {
				t.Errorf("status: role %q, redis %+v", s.Role, s.Redis)
			}
			says(t, "status page", s.Redis.Error, c.want)

			if strings.Contains(n.Log()+s.Redis.Error, rightSecret) || strings.Contains(n.Log()+s.Redis.Error, wrongSecret) {
				t.Error("a password is told")
			}

			if bad.mend == nil {
				nodes.Await(soon, "more attempts", func() bool { return bad.tried.Load() >= 5 })
			} else {
				bad.mend()
				if nodes.AwaitLeader(soon) != n {
					t.Error("the node does not lead once Redis is as it should be")
				}
			}
			if n := len(n.Lines(redisLost)); n != 1 {
				t.Errorf("told %d times", n)
			}
		})
	}
}

// A command has no time to wait: it says the same, and fails.
func TestCommandsSayWhatIsWrongWithRedis(t *testing.T) {
	t.Parallel()
	bad := wrongType(t)
	for _, command := range []string{"status", "leader", "stepdown"} {
		out := cluster.Command(t, soon, nil, command, "--redis", bad.url)
		if out.Code != 1 {
			t.Errorf("baton %s: code %d, want 1", command, out.Code)
		}
		says(t, command, out.Stderr, []string{`GET baton`, "Choose another election.lock_key, or delete the key"})
		out = cluster.Command(t, soon, nil, command, "--redis", "redis://127.0.0.1:1/0")
		if out.Code != 1 {
			t.Errorf("baton %s: code %d, want 1", command, out.Code)
		}
		says(t, command, out.Stderr, []string{"connect to redis 127.0.0.1:1", "is redis running there"})
	}
}

func says(t *testing.T, where, text string, want []string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s does not say %q: %s", where, w, text)
		}
	}
}

func unreachable(t *testing.T) badRedis {
	proxy := testsupport.StartRedis(t).Proxy()
	proxy.Block()
	return badRedis{url: "redis://" + proxy.Addr() + "/0", mend: proxy.Unblock}
}

func speaksHTTP(t *testing.T) badRedis {
	tried := &atomic.Int32{}
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			tried.Add(1)
		}
	}
	web.Start()
	t.Cleanup(web.Close)
	return badRedis{url: "redis://" + web.Listener.Addr().String() + "/0", tried: tried}
}

func replica(t *testing.T) badRedis {
	master := testsupport.StartRedis(t)
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	r := testsupport.StartRedis(t, testsupport.RedisArgs("--replicaof", host, port))
	return badRedis{url: r.URL(), mend: func() { command(t, r, "REPLICAOF", "NO", "ONE") }}
}

func noPassword(t *testing.T) badRedis {
	r := testsupport.StartRedis(t, testsupport.RedisPassword(rightSecret))
	return badRedis{url: r.URL(), mend: func() { command(t, r, "CONFIG", "SET", "requirepass", "") }}
}

func wrongPassword(t *testing.T) badRedis {
	bad := noPassword(t)
	file := filepath.Join(t.TempDir(), "password")
	write(t, file, wrongSecret)
	bad.redisYAML = "password_file: " + file
	bad.mend = func() { write(t, file, rightSecret) } // no restart
	return bad
}

func passwordFileMissing(t *testing.T) badRedis {
	bad := noPassword(t)
	file := filepath.Join(t.TempDir(), "password")
	bad.redisYAML = "password_file: " + file
	bad.mend = func() { write(t, file, rightSecret) }
	return bad
}

func wrongType(t *testing.T) badRedis {
	r := testsupport.StartRedis(t)
	command(t, r, "SADD", lockKey, "x")
	return badRedis{url: r.URL(), mend: func() { command(t, r, "DEL", lockKey) }}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, r *testsupport.Redis, name string, args ...any) {
	t.Helper()
	if _, err := r.Conn().Do(name, args...); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
