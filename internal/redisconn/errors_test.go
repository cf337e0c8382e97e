package redisconn_test

import (
	"strings"
	"testing"

	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// Each server uses its own text for a missing permission in a script, and no server answers with the code NOPERM.
func TestAPermissionThatAScriptLacksIsNamedAsOne(t *testing.T) {
	t.Parallel()
	r, url := testsupport.StartRedisWithUser(t)
	must(t, r, "ACL", "SETUSER", "baton", "reset", "on", ">PASSWORD", "+@all", "-publish", "~mine")
	s, err := redisconn.Open(redisconn.Options{URL: url, Username: "baton", Password: func() (string, error) { return "PASSWORD", nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	c, err := s.Conn(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for lacks, script := range map[string]string{
		"a key":                 "return redis.call('SET', 'theirs', 1)",
		"a command":             "return redis.call('PUBLISH', 'channel', 1)",
		"a key, in a reply":     "return redis.pcall('SET', 'theirs', 1)",
		"a command, in a reply": "return redis.pcall('PUBLISH', 'channel', 1)",
	} {
		_, err := c.Do("EVAL", script, 0)
		if told := redisconn.Explain(err); !redisconn.IsDenied(err) || !strings.Contains(told.Error(), "grant it by ACL SETUSER") {
			t.Errorf("%s: %v; told: %v", lacks, err, told)
		}
	}
	if _, err := c.Do("EVAL", "return redis.call('NONE')", 0); err == nil || redisconn.IsDenied(err) {
		t.Errorf("an unknown command in a script: %v", err)
	}
}
