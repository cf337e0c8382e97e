package redisledger

import (
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

// rig is a Redis of one test, with a store on it and a connection of the test's own.
type rig struct {
	testsupport.Client
	redis *testsupport.Redis
	store *redisconn.Store
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := testsupport.StartRedis(t)
	return &rig{Client: r.Client(t), redis: r, store: openStore(t, r.URL())}
}

func openStore(t *testing.T, url string) *redisconn.Store {
	t.Helper()
	return redistest.Open(t, redisconn.Options{URL: url, ClientName: "baton-test"})
}

// loadScripts spares a test the NOSCRIPT round trip before it loses a reply.
func (g *rig) loadScripts() {
	g.T.Helper()
	for _, s := range []*redis.Script{claimScripts.byString, missScripts.byString, finishScript} {
		if err := s.Load(g.Conn); err != nil {
			g.T.Fatal(err)
		}
	}
}
