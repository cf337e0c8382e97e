package testsupport_test

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

func TestRestartedRedisIsEmptyWithoutAOF(t *testing.T) {
	r := testsupport.StartRedis(t)
	addr := r.Addr()
	set(t, r.Conn(), "a", "1")

	r.Kill()
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Fatal("a killed Redis still accepts connections")
	}
	r.Restart()
	if r.Addr() != addr {
		t.Fatalf("restarted at %s, was at %s", r.Addr(), addr)
	}
	if _, err := redis.String(r.Conn().Do("GET", "a")); !errors.Is(err, redis.ErrNil) {
		t.Fatalf("GET after a restart without persistence: %v, want no value", err)
	}
}

func TestRedisWithAOFKeepsAcknowledgedWrites(t *testing.T) {
	r := testsupport.StartRedis(t, testsupport.RedisAOF())
	set(t, r.Conn(), "a", "1")
	r.Kill()
	r.Restart()
	if got, err := redis.String(r.Conn().Do("GET", "a")); err != nil || got != "1" {
		t.Fatalf("GET after kill and restart: %q, %v", got, err)
	}
}

func TestRedisPasswordIsAskedFor(t *testing.T) {
	r := testsupport.StartRedis(t, testsupport.RedisPassword("secret"), testsupport.RedisArgs("--databases", "1"))
	set(t, r.Conn(), "a", "1")
	anonymous, err := redis.DialURL(r.URL())
	if err == nil {
		defer anonymous.Close()
		_, err = anonymous.Do("GET", "a")
	}
	if err == nil {
		t.Fatal("a command without a password went through")
	}
}

func TestRedisListensOnAUnixSocketToo(t *testing.T) {
	r := testsupport.StartRedis(t, testsupport.RedisUnix())
	path, ok := strings.CutPrefix(r.SocketURL(), "unix://")
	if !ok {
		t.Fatalf("socket's URL is %s", r.SocketURL())
	}
	c, err := redis.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	set(t, c, "a", "1")
	set(t, r.Conn(), "a", "2")
}

func TestReplicaHasItsMastersDataFromTheStart(t *testing.T) {
	t.Parallel()
	master := testsupport.StartRedis(t, testsupport.RedisPassword("secret"))
	set(t, master.Conn(), "a", "1")
	replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(master))
	if got, err := redis.String(replica.Conn().Do("GET", "a")); err != nil || got != "1" {
		t.Fatalf("GET from the replica: %q, %v", got, err)
	}
	c := master.Conn()
	set(t, c, "a", "2")
	if n, err := redis.Int(c.Do("WAIT", 1, 5000)); err != nil || n != 1 {
		t.Fatalf("WAIT: %d replicas, %v", n, err)
	}
}

func TestFrozenRedisAnswersOnceThawed(t *testing.T) {
	r := testsupport.StartRedis(t)
	c, err := redis.Dial("tcp", r.Addr(), redis.DialReadTimeout(200*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r.Freeze()
	var timeout net.Error
	if _, err := c.Do("PING"); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("PING to a frozen Redis: %v, want a timeout", err)
	}
	r.Thaw()
	set(t, r.Conn(), "a", "1")
}

func TestStoppedServerLeavesNoFiles(t *testing.T) {
	dir := t.TempDir()
	r, err := testsupport.RunRedis(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
}

func TestServerThatCannotStartShowsItsLog(t *testing.T) {
	_, err := testsupport.RunRedis(t.TempDir(), testsupport.RedisArgs("--no-such-option", "1"))
	if err == nil || !contains(err.Error(), "no-such-option") {
		t.Fatalf("got %v, want the server's complaint", err)
	}
}

func set(t *testing.T, c redis.Conn, key, value string) {
	t.Helper()
	if _, err := c.Do("SET", key, value); err != nil {
		t.Fatal(err)
	}
}
