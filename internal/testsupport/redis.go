package testsupport

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	redisConf   = "redis.conf"
	redisSocket = "redis.sock"
)

// RedisDaemon is a Redis server for programs that are not tests.
type RedisDaemon struct {
	*Daemon
	password string
	bus      busPort
	tls      *tlsFiles
	clock    *steppedClock
	unix     bool
	begun    beginnings // set for a server that serves several tests
	// loadDelay is the server's delay for each key, in microseconds, while RestartLoading starts the server.
	loadDelay atomic.Int64
}

// RunRedis starts a Redis with its files below dir, or below the system's
// temporary directory if dir is empty. The caller stops it.
func RunRedis(dir string, opts ...RedisOption) (*RedisDaemon, error) {
	o := redisOptionsOf(opts)
	r, program, err := newRedisDaemon(dir, "redis", o)
	if err != nil {
		return nil, err
	}
	if err := r.prepare(o); err != nil {
		return nil, r.dir.Fail(err)
	}
	r.argv = func(port int) []string {
		argv := append(r.clock.wrap(), o.argv(program, r.dir.Path, port, r.bus.beside(port), r.tls)...)
		if delay := r.loadDelay.Load(); delay > 0 {
			argv = append(argv, "--key-load-delay", fmt.Sprint(delay), "--loading-process-events-interval-bytes", "1024")
		}
		return argv
	}
	r.ready = r.ping
	if err := r.start(); err != nil {
		return nil, r.dir.Fail(err)
	}
	if o.master != nil {
		if err := r.awaitLink(o.master); err != nil {
			return nil, errors.Join(err, r.Stop())
		}
	}
	return r, nil
}

// newRedisDaemon makes the directory of a server and finds its program.
func newRedisDaemon(dir, name string, o *redisOptions) (*RedisDaemon, string, error) {
	program, err := lookProgram(redisProgram())
	if err != nil {
		return nil, "", err
	}
	sd, err := newServerDir(dir, name)
	if err != nil {
		return nil, "", err
	}
	r := &RedisDaemon{
		password: o.password, unix: o.unix,
		Daemon: &Daemon{name: "redis-server", dir: sd, stop: syscall.SIGKILL},
	}
	if o.tls != nil {
		if r.tls, err = o.tls.in(sd.Path); err != nil {
			return nil, "", sd.Fail(err)
		}
	}
	return r, program, nil
}

// prepare makes the files that the server needs in its directory.
func (r *RedisDaemon) prepare(o *redisOptions) error {
	if o.clock {
		var err error
		if r.clock, err = newSteppedClock(r.dir.Path); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(r.dir.Path, redisConf), []byte(o.conf()), 0o600)
}

// ping returns nil when the server is ready. It waits while the server loads its data. Any other answer, including a refusal, shows that
// the server is in the state that the test needs.
func (r *RedisDaemon) ping(_ context.Context, d *Daemon) error {
	// The process id shows that the answer comes from our server, because another server may have taken the port.
	if err := r.infoHas("server", fmt.Sprintf("process_id:%d", d.proc.Pid())); err != nil {
		return err
	}
	_, err := r.do("EXISTS", "baton")
	var refusal redis.Error
	if errors.As(err, &refusal) && (!isLoading(refusal) || r.loadDelay.Load() > 0) {
		return nil
	}
	return err
}

func isLoading(err redis.Error) bool { return strings.HasPrefix(err.Error(), "LOADING") }

// awaitLink waits until a replica follows its master and the master counts it.
func (r *RedisDaemon) awaitLink(master *RedisDaemon) error {
	what := fmt.Sprintf("the replica on port %d follows the master on port %d", r.port, master.port)
	return await(readyWithin, what, func() error {
		if err := r.infoHas("replication", "master_link_status:up"); err != nil {
			return err
		}
		info, err := redis.String(master.do("INFO", "replication"))
		if err == nil && !strings.Contains(info, fmt.Sprintf("port=%d,state=online", r.port)) {
			err = fmt.Errorf("the master does not list this replica as online:\n%s", info)
		}
		return err
	})
}

// infoHas returns nil if the text want is a line of the section in the reply of INFO.
func (r *RedisDaemon) infoHas(section, want string) error {
	info, err := redis.String(r.do("INFO", section))
	if err == nil && !strings.Contains(info, "\n"+want+"\r\n") {
		err = fmt.Errorf("INFO %s has no %s:\n%s", section, want, info)
	}
	return err
}

// URL returns the server's URL without a password.
func (r *RedisDaemon) URL() string { return r.urlAt(r.Addr()) }

func (r *RedisDaemon) urlAt(addr string) string {
	if r.tls != nil {
		return "rediss://" + addr + "/0"
	}
	return "redis://" + addr + "/0"
}

// SocketURL returns the URL of the Unix socket, for a server started with RedisUnix.
func (r *RedisDaemon) SocketURL() string { return "unix://" + filepath.Join(r.dir.Path, redisSocket) }

// Dial opens a connection and logs in. Its time limit is long, because a node of a Cluster syncs each change of slots to the disk before it
// answers.
func (r *RedisDaemon) Dial() (redis.Conn, error) { return r.dial(30 * time.Second) }

func (r *RedisDaemon) dial(timeout time.Duration) (redis.Conn, error) {
	opts := []redis.DialOption{
		redis.DialPassword(r.password), redis.DialConnectTimeout(timeout),
		redis.DialReadTimeout(timeout), redis.DialWriteTimeout(timeout),
	}
	if r.tls != nil {
		opts = append(opts, redis.DialUseTLS(true), redis.DialTLSConfig(r.tls.config()))
	}
	return redis.Dial("tcp", r.Addr(), opts...)
}

// do runs one command on a new connection.
func (r *RedisDaemon) do(command string, args ...any) (any, error) {
	c, err := r.dial(5 * time.Second) // long enough for a busy machine
	if err != nil {
		return nil, err
	}
	defer c.Close()
	reply, err := c.Do(command, args...)
	if err != nil {
		return nil, fmt.Errorf("%s %v on %s: %w", command, args, r.Addr(), err)
	}
	return reply, nil
}

func (r *RedisDaemon) redisDaemon() *RedisDaemon { return r }

// Redis is a Redis server for one test alone.
type Redis struct {
	Server
	daemon *RedisDaemon
}

// TakeDataOf makes the server a replica of another server until it has that server's data, and then a master again. The server process
// continues to run.
func (r *Redis) TakeDataOf(other *Redis) {
	r.t.Helper()
	_, err := r.daemon.do("REPLICAOF", "127.0.0.1", fmt.Sprint(other.daemon.port))
	if err == nil {
		err = r.daemon.awaitLink(other.daemon)
	}
	if err == nil {
		_, err = r.daemon.do("REPLICAOF", "NO", "ONE")
	}
	if err != nil {
		r.t.Fatalf("take the data of another Redis: %v", err)
	}
}

// StartRedis starts an empty Redis, or reuses a Redis of an earlier test of this process (see redislease.go). No other test uses the server
// until this test ends.
func StartRedis(t testing.TB, opts ...RedisOption) *Redis {
	t.Helper()
	d, end, err := shared.redis.lease(opts)
	if err != nil {
		t.Fatalf("start a Redis for this test: %v", err)
	}
	atEnd(t, end)
	return &Redis{Server: Server{t: t, daemon: d.Daemon}, daemon: d}
}

// URL returns the server's URL without a password.
func (r *Redis) URL() string { return r.daemon.URL() }

// URLThrough returns the URL for a connection through the proxy p.
func (r *Redis) URLThrough(p *Proxy) string { return r.daemon.urlAt(p.Addr()) }

// SocketURL returns the URL of the Unix socket: unix:///path.
func (r *Redis) SocketURL() string {
	r.t.Helper()
	if !r.daemon.unix {
		r.t.Fatal("this Redis has no Unix socket: start it with RedisUnix()")
	}
	return r.daemon.SocketURL()
}

// Conn opens a connection and logs in. The connection is closed at the test's end.
func (r *Redis) Conn() redis.Conn {
	r.t.Helper()
	c, err := r.daemon.Dial()
	if err != nil {
		r.t.Fatalf("connect to the test's Redis: %v", err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Proxy returns a new proxy in front of this Redis.
func (r *Redis) Proxy() *Proxy {
	r.t.Helper()
	return NewProxy(r.t, r.Addr())
}

func (r *Redis) redisDaemon() *RedisDaemon { return r.daemon }
