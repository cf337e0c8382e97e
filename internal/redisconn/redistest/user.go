package redistest

import (
	"testing"

	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// StartWithUser starts a Redis with two users: the test's own user, and the user that the documentation recommends. It returns the
// options to connect as the recommended user.
func StartWithUser(t testing.TB) (*testsupport.Redis, redisconn.Options) {
	t.Helper()
	r, url := testsupport.StartRedisWithUser(t)
	return r, redisconn.Options{URL: url, Username: "baton", ClientName: "baton:test",
		Password: func() (string, error) { return "PASSWORD", nil }}
}
