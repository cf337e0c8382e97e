package redistest

import (
	"testing"

	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// StartWithUser starts a Redis that has, beside the test's user, the documented one only, and
// returns the options to connect as that.
func StartWithUser(t testing.TB) (*testsupport.Redis, redisconn.Options) {
	t.Helper()
	r, url := testsupport.StartRedisWithUser(t)
	return r, redisconn.Options{URL: url, Username: "baton", ClientName: "baton:test",
		Password: func() (string, error) { return "PASSWORD", nil }}
}
