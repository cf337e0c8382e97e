package daemon

import (
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/config"
	"baton/internal/crash"
	"baton/internal/testsupport"
)

// A user who releases another node's lock by hand may work on a host whose own node is alive.
func TestReleaseByHandLeavesThisHostsNodeListed(t *testing.T) {
	server := testsupport.StartRedis(t)
	conn := server.Conn()
	c := config.Config{Node: config.Node{ID: "db2"}, Redis: config.Redis{URL: server.URL()}}.WithDefaults()
	for _, command := range [][]any{{"SET", "baton", "owner-of-db1"}, {"HSET", "{baton}:nodes", "db2", "{}"}} {
		if _, err := conn.Do(command[0].(string), command[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := crash.Release(t.Context(), c, "owner-of-db1", "its host is gone"); err != nil || !r.Was {
		t.Fatalf("%+v, %v", r, err)
	}
	if held, err := redis.Int(conn.Do("EXISTS", "baton")); err != nil || held != 0 {
		t.Errorf("the lock is still held: %d, %v", held, err)
	}
	if listed, err := redis.Bool(conn.Do("HEXISTS", "{baton}:nodes", "db2")); err != nil || !listed {
		t.Errorf("node db2 is listed: %v, %v", listed, err)
	}
}
