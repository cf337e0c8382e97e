package testsupport

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// RedisOption changes how a Redis is started.
type RedisOption func(*redisOptions)

type redisOptions struct {
	password string
	args     []string
}

// RedisPassword makes the server ask for a password.
func RedisPassword(pw string) RedisOption { return func(o *redisOptions) { o.password = pw } }

// RedisAOF makes every acknowledged write survive Kill and Restart. Without it a
// restarted server is empty.
func RedisAOF() RedisOption {
	return RedisArgs("--appendonly", "yes", "--appendfsync", "always")
}

// RedisArgs are appended to the server's command line.
func RedisArgs(args ...string) RedisOption {
	return func(o *redisOptions) { o.args = append(o.args, args...) }
}

// RedisDaemon is a Redis for programs that are not tests.
type RedisDaemon struct {
	*Daemon
	password string
}

// RunRedis starts a Redis with its files below dir, or below the system's
// temporary directory if dir is empty. The caller stops it.
func RunRedis(dir string, opts ...RedisOption) (*RedisDaemon, error) {
	var o redisOptions
	for _, opt := range opts {
		opt(&o)
	}
	program, err := lookProgram("redis-server")
	if err != nil {
		return nil, err
	}
	sd, err := newServerDir(dir, "redis")
	if err != nil {
		return nil, err
	}
	r := &RedisDaemon{password: o.password, Daemon: &Daemon{name: "redis-server", dir: sd, stop: syscall.SIGKILL}}
	r.argv = func(port int) []string {
		argv := []string{program, "--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--dir", sd.path,
			"--save", "", "--appendonly", "no", "--daemonize", "no"}
		if o.password != "" {
			argv = append(argv, "--requirepass", o.password)
		}
		return append(argv, o.args...)
	}
	r.ready = r.ping
	if err := r.start(); err != nil {
		return nil, sd.fail(err)
	}
	return r, nil
}

// ping also waits while the server loads its data.
func (r *RedisDaemon) ping(_ context.Context, d *Daemon) error {
	c, err := r.dial(time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	info, err := redis.String(c.Do("INFO", "server"))
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("process_id:%d\r\n", d.proc.pid); !strings.Contains(info, want) {
		return fmt.Errorf("another redis-server answers on %s", r.Addr())
	}
	_, err = c.Do("EXISTS", "baton")
	return err
}

// URL has no password in it.
func (r *RedisDaemon) URL() string { return "redis://" + r.Addr() + "/0" }

// Dial opens a connection, logged in.
func (r *RedisDaemon) Dial() (redis.Conn, error) { return r.dial(5 * time.Second) }

func (r *RedisDaemon) dial(timeout time.Duration) (redis.Conn, error) {
	return redis.Dial("tcp", r.Addr(), redis.DialPassword(r.password), redis.DialConnectTimeout(timeout),
		redis.DialReadTimeout(timeout), redis.DialWriteTimeout(timeout))
}

// Redis is a private Redis of one test.
type Redis struct {
	Server
	daemon *RedisDaemon
}

// StartRedis starts a Redis that is stopped at the test's end.
func StartRedis(t testing.TB, opts ...RedisOption) *Redis {
	t.Helper()
	d, err := RunRedis("", opts...)
	if err != nil {
		t.Fatalf("start a Redis for this test: %v", err)
	}
	return &Redis{Server: newServer(t, d.Daemon), daemon: d}
}

// URL has no password in it.
func (r *Redis) URL() string { return r.daemon.URL() }

// URLThrough is URL by way of a proxy.
func (r *Redis) URLThrough(p *Proxy) string { return "redis://" + p.Addr() + "/0" }

// Conn opens a connection, logged in and closed at the test's end.
func (r *Redis) Conn() redis.Conn {
	r.t.Helper()
	c, err := r.daemon.Dial()
	if err != nil {
		r.t.Fatalf("connect to the test's Redis: %v", err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Proxy is a new proxy in front of this Redis.
func (r *Redis) Proxy() *Proxy {
	r.t.Helper()
	return NewProxy(r.t, r.Addr())
}
