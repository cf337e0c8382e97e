package testsupport

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// DocumentedUser returns the arguments of the ACL command that creates the user of docs/redis.md: "baton" with the password "PASSWORD".
func DocumentedUser(t testing.TB) []any {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "docs", "redis.md"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ACL (SETUSER baton .*)$`).FindStringSubmatch(string(text))
	if line == nil {
		t.Fatal("docs/redis.md has no ACL line")
	}
	var args []any
	for word := range strings.FieldsSeq(line[1]) {
		args = append(args, word)
	}
	return args
}

// StartRedisWithUser starts a Redis with two users: the test's own user, and the user of the documentation. It returns the URL of a
// database that the documented user may use.
func StartRedisWithUser(t testing.TB) (r *Redis, url string) {
	t.Helper()
	r = StartRedis(t, RedisPassword("treasure"))
	if _, err := r.Conn().Do("ACL", DocumentedUser(t)...); err != nil {
		t.Fatal(err)
	}
	return r, strings.TrimSuffix(r.URL(), "/0") + "/1"
}
