package redistest

import (
	"testing"

	"baton/internal/redisconn"
)

// Open opens a store. The store is closed at the test's end.
func Open(t testing.TB, o redisconn.Options) *redisconn.Store {
	t.Helper()
	s, err := redisconn.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
