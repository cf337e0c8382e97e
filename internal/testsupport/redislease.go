package testsupport

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A test has its Redis to itself, from an empty start. Starting a process for each is most of
// what many tests would make the processors do: a Redis that a test leaves as it found it, but
// for keys, scripts, users and settings, is renewed and serves the next test of this process,
// at another port. One that was killed, frozen or restarted, that ever had a replica, or that
// went through anything else that marks it, serves one test alone.

// redisLeases are the servers that wait for a next test, by what they were started with.
type redisLeases struct {
	mu       sync.Mutex
	servers  map[string][]*RedisDaemon
	clusters []*RedisClusterDaemon
}

// leaseKind says what servers are alike; ok is false for one that only one test has.
func (o *redisOptions) leaseKind() (kind string, ok bool) {
	alone := len(o.args) > 0 || o.unix || o.cluster || o.tls != nil || o.master != nil
	return fmt.Sprintf("clock %t, password %s", o.clock, o.password), !alone
}

// lease returns a Redis for one test, and what to do with it at the test's end.
func (l *redisLeases) lease(opts []RedisOption) (r *RedisDaemon, end func() error, err error) {
	kind, ok := redisOptionsOf(opts).leaseKind()
	if !ok {
		if r, err = RunRedis("", opts...); err != nil {
			return nil, nil, err
		}
		return r, r.Stop, nil
	}
	if r = l.take(kind); r != nil {
		if err := r.proc.Signal(syscall.SIGCONT); err != nil {
			return nil, nil, errors.Join(err, r.Stop())
		}
	} else {
		if r, err = RunRedis("", opts...); err != nil {
			return nil, nil, err
		}
		if err := r.beginLeases(); err != nil {
			return nil, nil, errors.Join(err, r.Stop())
		}
	}
	return r, func() error {
		if r.disturbed() || r.renew() != nil || r.proc.Freeze() != nil { // one that waits takes no time of a processor
			return r.Stop()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.servers[kind] = append(l.servers[kind], r)
		return nil
	}, nil
}

func (l *redisLeases) take(kind string) *RedisDaemon {
	l.mu.Lock()
	defer l.mu.Unlock()
	idle := l.servers[kind]
	if len(idle) == 0 {
		return nil
	}
	l.servers[kind] = idle[:len(idle)-1]
	return idle[len(idle)-1]
}

// leaseCluster is lease for a Cluster, which stays at its ports.
func (l *redisLeases) leaseCluster(opts []RedisOption) (c *RedisClusterDaemon, end func() error, err error) {
	if len(opts) > 0 {
		if c, err = RunCluster("", opts...); err != nil {
			return nil, nil, err
		}
		if err := c.setNodeTimeout(patientNodeTimeout); err != nil {
			return nil, nil, c.fail(err)
		}
		return c, c.Stop, nil
	}
	for c = l.takeCluster(); c != nil; c = l.takeCluster() {
		if c.agree(5*time.Second) == nil {
			break
		}
		if err := c.Stop(); err != nil {
			return nil, nil, err
		}
	}
	if c == nil {
		if c, err = RunCluster(""); err != nil {
			return nil, nil, err
		}
		if err := each(c.members, (*RedisDaemon).beginLeases); err != nil {
			return nil, nil, c.fail(err)
		}
	}
	if err := c.setNodeTimeout(patientNodeTimeout); err != nil {
		return nil, nil, c.fail(err)
	}
	return c, func() error {
		if slices.ContainsFunc(c.members, func(r *RedisDaemon) bool { return r.disturbed() }) || each(c.members, (*RedisDaemon).renewNode) != nil {
			return c.Stop()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.clusters = append(l.clusters, c)
		return nil
	}, nil
}

func (l *redisLeases) takeCluster() *RedisClusterDaemon {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.clusters) == 0 {
		return nil
	}
	c := l.clusters[len(l.clusters)-1]
	l.clusters = l.clusters[:len(l.clusters)-1]
	return c
}

// stop ends all servers that wait.
func (l *redisLeases) stop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, servers := range l.servers {
		for _, r := range servers {
			errs = append(errs, r.Stop())
		}
	}
	for _, c := range l.clusters {
		errs = append(errs, c.Stop())
	}
	return errors.Join(errs...)
}

// beginnings are how a server is before its first test.
type beginnings struct {
	users    []string
	settings map[string]string
}

// beginLeases notes how the server is, and lets its statistics begin.
func (r *RedisDaemon) beginLeases() error {
	c, err := r.Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	users, err := redis.Strings(c.Do("ACL", "LIST"))
	if err != nil {
		return err
	}
	settings, err := redis.StringMap(c.Do("CONFIG", "GET", "*"))
	if err != nil {
		return err
	}
	r.begun = beginnings{users: users, settings: settings}
	return pipeline(c, statistics...)
}

// statistics begin with these: a test that makes the server forget them makes it forget the
// last of these too.
var statistics = []string{"CONFIG RESETSTAT", "LATENCY RESET"}

const lastOfStatistics = "latency|reset"

// renew makes the server as it was before the test, but for its port: what is left of the
// test's clients finds nobody there. It fails if the server cannot be made so.
func (r *RedisDaemon) renew() error {
	c, err := r.dial(5 * time.Second) // a server that is slower serves nobody else
	if err != nil {
		return err
	}
	defer c.Close()
	did, err := r.unmarked(c)
	if err != nil {
		return err
	}
	if r.clock != nil {
		if err := r.StepClock(0); err != nil {
			return err
		}
	}
	if err := r.moveAway(c); err != nil {
		return err
	}
	if err := r.restore(c, did); err != nil {
		return err
	}
	return pipeline(c, slices.Concat(cutOff, []string{"FLUSHALL SYNC"}, forget, statistics)...)
}

var (
	cutOff = []string{"CLIENT KILL TYPE normal SKIPME yes", "CLIENT KILL TYPE pubsub"}
	forget = []string{"SCRIPT FLUSH SYNC", "ACL LOG RESET", "SLOWLOG RESET"}
)

// moveAway makes the server listen at another port, and nowhere else.
func (r *RedisDaemon) moveAway(c redis.Conn) error {
	var refusal error
	for range portTries {
		port, err := freePort()
		if err != nil {
			return err
		}
		if _, refusal = c.Do("CONFIG", "SET", "port", port); refusal == nil {
			r.port = port
			return nil
		}
	}
	return refusal
}

// renewNode is renew for a node of a Cluster. Slots may have moved, but none is on its way.
func (r *RedisDaemon) renewNode() error {
	c, err := r.dial(5 * time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	did, err := r.unmarked(c, "replconf", "cluster|countkeysinslot", "cluster|getkeysinslot", "cluster|info", "cluster|keyslot",
		"cluster|links", "cluster|myid", "cluster|nodes", "cluster|setslot", "cluster|shards", "cluster|slots")
	if err != nil {
		return err
	}
	nodes, err := redis.String(c.Do("CLUSTER", "NODES"))
	if err != nil {
		return err
	}
	if strings.Contains(nodes, " [") {
		return fmt.Errorf("%w: a slot is on its way:\n%s", errMarked, nodes)
	}
	if err := r.restore(c, did); err != nil {
		return err
	}
	commands := slices.Clone(cutOff)
	if me, err := r.clusterSelf(); err != nil {
		return err
	} else if me.is("master") {
		commands = append(commands, "FLUSHALL SYNC", "WAIT 1 5000")
	}
	return pipeline(c, slices.Concat(commands, forget, statistics)...)
}

// marking are the commands after which a server is not as it was, whatever is done about it
// then. A container of subcommands ends with "|".
var marking = []string{
	"acl|load", "acl|save", "bgrewriteaof", "bgsave", "client|pause", "cluster|", "config|rewrite", "debug", "failover",
	"function|", "module|", "monitor", "psync", "replconf", "replicaof", "save", "shutdown", "slaveof", "swapdb", "sync",
}

// errMarked: a test has left more behind than can be made good.
var errMarked = errors.New("this Redis is not as it was")

// unmarked tells which commands were carried out since the statistics began, in scripts too.
// It fails if one of them has marked the server.
func (r *RedisDaemon) unmarked(c redis.Conn, but ...string) (did []string, err error) {
	stats, err := redis.String(c.Do("INFO", "commandstats"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(stats) {
		name, ok := strings.CutPrefix(line, "cmdstat_")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(name, ":")
		did = append(did, name)
		marks := slices.ContainsFunc(marking, func(m string) bool {
			return name == m || strings.HasSuffix(m, "|") && strings.HasPrefix(name, m)
		})
		if marks && !slices.Contains(but, name) {
			return nil, fmt.Errorf("%w: %s", errMarked, name)
		}
	}
	if !slices.Contains(did, lastOfStatistics) {
		return nil, fmt.Errorf("%w: its statistics began anew", errMarked)
	}
	return did, nil
}

// lasting are the settings that have left files behind.
var lasting = []string{"appendonly", "dbfilename", "dir", "save"}

// restore gives the server the users and settings back that it had, if did says that others
// may have been set.
func (r *RedisDaemon) restore(c redis.Conn, did []string) error {
	if slices.Contains(did, "acl|setuser") || slices.Contains(did, "acl|deluser") {
		if err := r.restoreUsers(c); err != nil {
			return err
		}
	}
	if !slices.Contains(did, "config|set") {
		return nil
	}
	settings, err := redis.StringMap(c.Do("CONFIG", "GET", "*"))
	if err != nil {
		return err
	}
	for name, value := range settings {
		begun := r.begun.settings[name]
		if value == begun || name == "port" {
			continue
		}
		if slices.Contains(lasting, name) {
			return fmt.Errorf("%w: setting %s", errMarked, name)
		}
		if _, err := c.Do("CONFIG", "SET", name, begun); err != nil {
			return err
		}
	}
	if settings, err = redis.StringMap(c.Do("CONFIG", "GET", "*")); err != nil {
		return err
	}
	settings["port"] = r.begun.settings["port"]
	if !maps.Equal(settings, r.begun.settings) {
		return fmt.Errorf("%w: its settings", errMarked)
	}
	return nil
}

// restoreUsers leaves the default user alone, as it was.
func (r *RedisDaemon) restoreUsers(c redis.Conn) error {
	names, err := redis.Strings(c.Do("ACL", "USERS"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == "default" {
			continue
		}
		if _, err := c.Do("ACL", "DELUSER", name); err != nil {
			return err
		}
	}
	users, err := redis.Strings(c.Do("ACL", "LIST"))
	if err == nil && !slices.Equal(users, r.begun.users) {
		err = fmt.Errorf("%w: its users are %q", errMarked, users)
	}
	return err
}

// pipeline sends commands at once and returns the first error.
func pipeline(c redis.Conn, commands ...string) error {
	for _, command := range commands {
		words := strings.Fields(command)
		if err := c.Send(words[0], redis.Args{}.AddFlat(words[1:])...); err != nil {
			return err
		}
	}
	if err := c.Flush(); err != nil {
		return err
	}
	for _, command := range commands {
		if _, err := c.Receive(); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
	}
	return nil
}

// atEnd ends a lease when its test does.
func atEnd(t testing.TB, end func() error) {
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Errorf("stop a server of this test: %v", err)
		}
	})
}
