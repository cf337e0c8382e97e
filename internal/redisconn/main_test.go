package redisconn

import (
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) {
	testsupport.AtOnce(6)
	testsupport.Main(m)
}

// rig is the Redis of one test, with a store and with a connection of another client.
type rig struct {
	testsupport.Client
	store *Store
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := testsupport.StartRedis(t)
	return &rig{Client: r.Client(t), store: openStore(t, r.URL())}
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
