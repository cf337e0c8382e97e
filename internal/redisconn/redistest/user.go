package redistest

import (
	"testing"

	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// StartWithUser starts a Redis whose only user with any rights, but for the test's, is the
// documented one, and tells how that connects.
func StartWithUser(t testing.TB) (*testsupport.Redis, redisconn.Options) {
	t.Helper()
	r, url := testsupport.StartRedisWithUser(t)
	return r, redisconn.Options{URL: url, Username: "baton", ClientName: "baton:test",
		Password: func() (string, error) { return "PASSWORD", nil }}
}
