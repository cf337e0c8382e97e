package redisledger

import (
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

// rig is the Redis of one test, with a store and with the test's own connection.
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

// loadScripts loads all scripts, so that a test that loses a reply does not lose the reply NOSCRIPT.
func (g *rig) loadScripts() {
	g.T.Helper()
	for _, s := range []*redis.Script{claimScripts.byString, missScripts.byString, finishScript} {
		if err := s.Load(g.Conn); err != nil {
			g.T.Fatal(err)
		}
	}
}
