package redisledger

import (
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// rig is a Redis of one test, with a store on it and a connection of the test's own.
type rig struct {
	t     *testing.T
	redis *testsupport.Redis
	store *redisconn.Store
	conn  redis.Conn
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := testsupport.StartRedis(t)
	return &rig{t: t, redis: r, store: openStore(t, r.URL()), conn: r.Conn()}
}

func openStore(t *testing.T, url string) *redisconn.Store {
	t.Helper()
	s, err := redisconn.Open(redisconn.Options{URL: url, ClientName: "baton-test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// do runs a command that must succeed.
func (g *rig) do(name string, args ...any) any {
	g.t.Helper()
	reply, err := g.conn.Do(name, args...)
	if err != nil {
		g.t.Fatalf("%s: %v", name, err)
	}
	return reply
}

func (g *rig) num(name string, args ...any) int64 {
	g.t.Helper()
	n, err := redis.Int64(g.do(name, args...), nil)
	if err != nil {
		g.t.Fatalf("%s: %v", name, err)
	}
	return n
}

// loadScripts spares a test the NOSCRIPT round trip before it loses a reply.
func (g *rig) loadScripts() {
	g.t.Helper()
	for _, s := range []*redis.Script{claimScripts.byString, missScripts.byString, finishScript} {
		if err := s.Load(g.conn); err != nil {
			g.t.Fatal(err)
		}
	}
}
