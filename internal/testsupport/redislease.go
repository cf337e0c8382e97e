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

// Each test gets an empty Redis that no other test uses at that time. If each test started a new process, the starts would take most of the
// processors' time. So a Redis serves the next test of this process, at another port, if a test has changed only keys, scripts, users and
// settings. Otherwise a Redis serves one test alone: if it was killed, frozen or restarted, ever had a replica, or ran one of the commands
// in the list marking.

// redisLeases holds the idle servers that the next test can use. The keys of the map servers come from leaseKind.
type redisLeases struct {
	mu       sync.Mutex
	servers  map[string][]*RedisDaemon
	clusters []*RedisClusterDaemon
}

// leaseKind returns a text that is equal for servers that can replace each other. The result ok is false for a server that serves one test
// alone.
func (o *redisOptions) leaseKind() (kind string, ok bool) {
	alone := len(o.args) > 0 || o.unix || o.cluster || o.tls != nil || o.master != nil
	return fmt.Sprintf("clock %t, password %s", o.clock, o.password), !alone
}

// lease returns a Redis for one test, and a function to call at the test's end.
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
		if r.disturbed() || r.renew() != nil || r.proc.Freeze() != nil { // a frozen server uses no processor time
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

// leaseCluster is like lease for a Cluster. A Cluster keeps its ports.
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

// stop stops all idle servers.
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

// beginnings is the state of a server before its first test.
type beginnings struct {
	users    []string
	settings map[string]string
}

// beginLeases records the state of the server, and resets its statistics.
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

// statistics lists the commands that reset the statistics. If a test resets the statistics again, the server loses the count of the last of
// these commands, which unmarked notices.
var statistics = []string{"CONFIG RESETSTAT", "LATENCY RESET"}

const lastOfStatistics = "latency|reset"

// renew restores the state that the server had before the test. The server moves to a new port, so that clients of the earlier test cannot
// reach it. renew returns an error if it cannot restore that state.
func (r *RedisDaemon) renew() error {
	c, err := r.dial(5 * time.Second) // a server that is slower is not used again
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

// moveAway makes the server listen at another port instead of its present port.
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

// renewNode is like renew for a node of a Cluster. Slots may have moved, but no move may be unfinished.
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
		return fmt.Errorf("%w: a slot is being moved:\n%s", errMarked, nodes)
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

// marking lists the commands whose effects renew cannot undo. A command that has subcommands ends with "|".
var marking = []string{
	"acl|load", "acl|save", "bgrewriteaof", "bgsave", "client|pause", "cluster|", "config|rewrite", "debug", "failover",
	"function|", "module|", "monitor", "psync", "replconf", "replicaof", "save", "shutdown", "slaveof", "swapdb", "sync",
}

// errMarked means that renew cannot undo the changes of a test.
var errMarked = errors.New("this Redis differs from its state before the test")

// unmarked returns the commands that ran since the statistics were reset, also inside scripts. It returns an error if one of these commands
// is in the list marking. The last argument contains exceptions.
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
		return nil, fmt.Errorf("%w: its statistics were reset", errMarked)
	}
	return did, nil
}

// lasting lists the settings that make the server leave files behind.
var lasting = []string{"appendonly", "dbfilename", "dir", "save"}

// restore restores the server's earlier users and settings, if one of the given commands may have changed them.
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

// restoreUsers deletes the users that a test has added. It returns an error if the default user has changed.
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

// pipeline sends all commands together and returns the first error.
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

// atEnd calls the function end when the test ends, and fails the test if this function returns an error.
func atEnd(t testing.TB, end func() error) {
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Errorf("stop a server of this test: %v", err)
		}
	})
}
