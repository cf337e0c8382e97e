package main

import (
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// oneRedis is the server of all tests that only use it and do not change its settings. It is a variable of the package because a test
// binary has one process and many entry points.
var oneRedis = sync.OnceValues(func() (*testsupport.RedisDaemon, error) {
	dir, err := testsupport.SharedDir("redis")
	if err != nil {
		return nil, err
	}
	return testsupport.RunRedis(dir)
})

// emptyRedis is the server of one test. The test can use it alone, because the tests run one after the other, and the daemons of one test
// end before the next test.
type emptyRedis struct {
	t *testing.T
	*testsupport.RedisDaemon
}

func useRedis(t *testing.T) emptyRedis {
	t.Helper()
	server, err := oneRedis()
	if err != nil {
		t.Fatalf("start the Redis that the tests share: %v", err)
	}
	r := emptyRedis{t, server}
	r.Client(t).Do("FLUSHALL")
	return r
}

// Client returns a new client with its own connection.
func (r emptyRedis) Client(t testing.TB) testsupport.Client {
	return testsupport.Client{T: t, Conn: r.Conn()}
}

// Conn opens a connection that is closed at the end of the test.
func (r emptyRedis) Conn() redis.Conn {
	r.t.Helper()
	c, err := r.Dial()
	if err != nil {
		r.t.Fatalf("connect to the Redis that the tests share: %v", err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}
