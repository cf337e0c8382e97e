package redisconn

import (
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) {
	testsupport.AtOnce(6)
	testsupport.Main(m)
}

// rig is a Redis of one test, with a store on it and a connection of another client.
type rig struct {
	t     testing.TB
	store *Store
	conn  redis.Conn
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := testsupport.StartRedis(t)
	return &rig{t: t, store: openStore(t, r.URL()), conn: r.Conn()}
}

func openStore(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(Options{URL: url, ClientName: "baton-test"})
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

func (g *rig) send(name string, args ...any) {
	g.t.Helper()
	if err := g.conn.Send(name, args...); err != nil {
		g.t.Fatal(err)
	}
}
