package testsupport

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	sentinelMaster = "mymaster"
	// failoverWithin is the time limit for a failover. It is long, because the machine may be busy. On an idle machine a failover takes one
	// to three seconds, and twice sentinelTimeout more if two Sentinels start a failover at the same time.
	failoverWithin  = 60 * time.Second
	sentinelTimeout = 2 * time.Second
)

// sentinelHaste contains intervals of Sentinel in milliseconds, which are shorter than the default intervals of some seconds. It also
// shortens the half minute in which a Sentinel stays inactive after a delay of its own process. Shorter values would break a failover:
// Sentinel rejects a replica that was silent for five pings, but during a failover a replica reports only once a second. After four
// publications Sentinel also demotes a replica that claims to be a master, and the promoting Sentinel must publish the new master before
// that.
var sentinelHaste = []any{
	"info-period", 500, "ping-period", 500, "ask-period", 200, "publish-period", 700, "tilt-period", 1000,
}

// SentinelPassword makes the Sentinels require a password of their own.
func SentinelPassword(pw string) RedisOption {
	return func(o *redisOptions) { o.sentinelPassword = pw }
}

// SentinelDaemon is a group of a master, two replicas and three Sentinels, for programs that are not tests.
type SentinelDaemon struct {
	redisGroup
	data, sentinels []*RedisDaemon
}

// RunSentinel starts a master, two replicas and three Sentinels. Their files are below dir, or below the system's temporary directory if
// dir is empty. The options are for the data servers; with RedisTLS the Sentinels also use TLS.
func RunSentinel(dir string, opts ...RedisOption) (*SentinelDaemon, error) {
	s := &SentinelDaemon{}
	if err := s.run(dir, opts); err != nil {
		return nil, s.fail(fmt.Errorf("start Sentinel: %w", err))
	}
	return s, nil
}

func (s *SentinelDaemon) run(dir string, opts []RedisOption) error {
	opts, err := s.share(dir, opts)
	if err != nil {
		return err
	}
	if s.data, err = s.add(1, func(int) (*RedisDaemon, error) { return RunRedis(dir, opts...) }); err != nil {
		return err
	}
	master := s.data[0]
	asReplica := slices.Concat(opts, []RedisOption{RedisReplicaOf(master)})
	replicas, err := s.add(2, func(int) (*RedisDaemon, error) { return RunRedis(dir, asReplica...) })
	if err != nil {
		return err
	}
	s.data = append(s.data, replicas...)
	o := redisOptionsOf(opts)
	if s.sentinels, err = s.add(3, func(int) (*RedisDaemon, error) { return runSentinelNode(dir, o, master) }); err != nil {
		return err
	}
	return await(readyWithin, "the Sentinels know each other and both replicas", func() error {
		return each(s.sentinels, s.knowsAll)
	})
}

// runSentinelNode starts one Sentinel.
func runSentinelNode(dir string, data *redisOptions, master *RedisDaemon) (*RedisDaemon, error) {
	o := &redisOptions{password: data.sentinelPassword, tls: data.tls}
	r, program, err := newRedisDaemon(dir, "sentinel", o)
	if err != nil {
		return nil, err
	}
	// Sentinel writes its state into this file.
	err = os.WriteFile(filepath.Join(r.dir.Path, redisConf), []byte(sentinelConf(data, master)), 0o600)
	if err != nil {
		return nil, r.dir.Fail(err)
	}
	r.argv = func(port int) []string { return append(o.serverArgs(program, r.dir.Path, port, r.tls), "--sentinel") }
	r.ready = func(context.Context, *Daemon) error { return r.hasten() }
	if err := r.start(); err != nil {
		return nil, r.dir.Fail(err)
	}
	return r, nil
}

func sentinelConf(data *redisOptions, master *RedisDaemon) string {
	const name = sentinelMaster
	lines := []string{
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", name, master.port),
		fmt.Sprintf("sentinel down-after-milliseconds %s 500", name),
		fmt.Sprintf("sentinel failover-timeout %s %d", name, sentinelTimeout.Milliseconds()),
		fmt.Sprintf("sentinel parallel-syncs %s 2", name),
	}
	if data.password != "" {
		lines = append(lines, fmt.Sprintf("sentinel auth-pass %s %q", name, data.password))
	}
	if data.sentinelPassword != "" {
		lines = append(lines, fmt.Sprintf("requirepass %q", data.sentinelPassword),
			fmt.Sprintf("sentinel sentinel-pass %q", data.sentinelPassword))
	}
	return strings.Join(lines, "\n") + "\n"
}

// hasten sets sentinelHaste. It runs at every start, because Sentinel does not write these settings into its file.
func (r *RedisDaemon) hasten() error {
	if err := r.infoHas("server", fmt.Sprintf("process_id:%d", r.proc.Pid())); err != nil {
		return err
	}
	_, err := r.do("SENTINEL", append([]any{"DEBUG"}, sentinelHaste...)...)
	return err
}

// knowsAll returns nil if a Sentinel knows the other two Sentinels, and knows both replicas as ready to take over.
func (s *SentinelDaemon) knowsAll(r *RedisDaemon) error {
	master, err := redis.StringMap(r.do("SENTINEL", "MASTER", sentinelMaster))
	if err != nil {
		return err
	}
	if master["num-other-sentinels"] != "2" || master["num-slaves"] != "2" || master["flags"] != "master" {
		return fmt.Errorf("it sees %s other Sentinels, %s replicas, and the master as %s",
			master["num-other-sentinels"], master["num-slaves"], master["flags"])
	}
	replicas, err := redis.Values(r.do("SENTINEL", "REPLICAS", sentinelMaster))
	if err != nil {
		return err
	}
	for _, reply := range replicas {
		replica, err := redis.StringMap(reply, nil)
		if err != nil {
			return err
		}
		if replica["flags"] != "slave" || replica["master-link-status"] != "ok" {
			return fmt.Errorf("it sees replica %s as %s with its link %s",
				replica["name"], replica["flags"], replica["master-link-status"])
		}
	}
	return nil
}

// Name returns the name that the Sentinels use for the master.
func (s *SentinelDaemon) Name() string { return sentinelMaster }

// Addresses returns the addresses of the Sentinels.
func (s *SentinelDaemon) Addresses() []string { return addresses(s.sentinels) }

// Sentinels returns the three Sentinels.
func (s *SentinelDaemon) Sentinels() []*RedisDaemon { return slices.Clone(s.sentinels) }

// Data returns the three Redis servers. The first one was the first master.
func (s *SentinelDaemon) Data() []*RedisDaemon { return slices.Clone(s.data) }

// AwaitMaster waits until most Sentinels name a master other than the given server, and that master also reports that it is a master. If
// the given server is nil, AwaitMaster accepts any master.
func (s *SentinelDaemon) AwaitMaster(not *RedisDaemon) (master *RedisDaemon, err error) {
	err = await(failoverWithin, "most Sentinels agree on a master that answers", func() error {
		if master, err = s.elected(); err != nil {
			return err
		}
		if master == not {
			return fmt.Errorf("the master is still %s", not.Addr())
		}
		return master.infoHas("replication", "role:master")
	})
	return master, err
}

// elected returns the master that at least two Sentinels name.
func (s *SentinelDaemon) elected() (*RedisDaemon, error) {
	var mu sync.Mutex
	votes := map[string]int{}
	err := each(s.sentinels, func(r *RedisDaemon) error {
		addr, err := redis.Strings(r.do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelMaster))
		if err == nil && len(addr) == 2 {
			mu.Lock()
			votes[addr[1]]++
			mu.Unlock()
		}
		return err
	})
	for _, r := range s.data {
		if votes[fmt.Sprint(r.port)] >= 2 {
			return r, nil // the third Sentinel may be down
		}
	}
	return nil, errors.Join(fmt.Errorf("the Sentinels name these ports (port: votes): %v", votes), err)
}

// Failover makes the Sentinels replace the master by a replica, as for maintenance, and waits until the replica is the master. Unlike the
// failover of a Cluster, it may lose the last writes.
func (s *SentinelDaemon) Failover() error {
	old, err := s.AwaitMaster(nil)
	if err != nil {
		return err
	}
	leader := s.sentinels[0]
	err = await(failoverWithin, "a Sentinel has carried out a failover", func() error {
		addr, err := redis.Strings(leader.do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelMaster))
		if err != nil || len(addr) != 2 || addr[1] != fmt.Sprint(old.port) {
			return err
		}
		// The Sentinel refuses the command while a failover is running, or while no replica is fit to become the master. The command is
		// also repeated because Sentinel may give up a failover.
		_, refusal := leader.do("SENTINEL", "FAILOVER", sentinelMaster)
		return errors.Join(fmt.Errorf("the master is still %s", old.Addr()), refusal)
	})
	if err != nil {
		return err
	}
	_, err = s.AwaitMaster(old)
	return err
}

// AwaitReplica waits until a server follows the master that the Sentinels name.
func (s *SentinelDaemon) AwaitReplica(r *RedisDaemon) error {
	return await(failoverWithin, r.Addr()+" is a replica of the master", func() error {
		master, err := s.elected()
		if err != nil {
			return err
		}
		for _, want := range []string{"role:slave", fmt.Sprintf("master_port:%d", master.port), "master_link_status:up"} {
			if err := r.infoHas("replication", want); err != nil {
				return err
			}
		}
		return nil
	})
}

// Sentinel is a master with two replicas and three Sentinels, for one test alone. A killed or frozen master is replaced within one to three
// seconds. When the old master runs again, it is a master for about three seconds and then a replica.
type Sentinel struct {
	daemon *SentinelDaemon
	group  testGroup
}

// StartSentinel starts a master, two replicas and three Sentinels, and stops them at the test's end. The options are the same as for
// RunSentinel.
func StartSentinel(t testing.TB, opts ...RedisOption) *Sentinel {
	t.Helper()
	d, err := RunSentinel("", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return &Sentinel{daemon: d, group: newTestGroup(t, &d.redisGroup, d.Stop)}
}

// Daemon returns the servers as a SentinelDaemon, whose methods return errors instead of failing the test.
func (s *Sentinel) Daemon() *SentinelDaemon { return s.daemon }

// Name returns the name that the Sentinels use for the master.
func (s *Sentinel) Name() string { return s.daemon.Name() }

// Addresses returns the addresses of the Sentinels.
func (s *Sentinel) Addresses() []string { return s.daemon.Addresses() }

// Sentinels returns the three Sentinels.
func (s *Sentinel) Sentinels() []*Redis { return s.group.all(s.daemon.sentinels) }

// Master returns the present master, like AwaitMaster(nil).
func (s *Sentinel) Master() *Redis { s.group.t.Helper(); return s.AwaitMaster(nil) }

// Replicas returns the two servers other than Master, whether they run or not.
func (s *Sentinel) Replicas() []*Redis {
	s.group.t.Helper()
	master := s.Master()
	return slices.DeleteFunc(s.group.all(s.daemon.data), func(r *Redis) bool { return r == master })
}

// AwaitMaster waits until most Sentinels name a master other than the given server, and that master also reports that it is a master. If
// the given server is nil, AwaitMaster accepts any master.
func (s *Sentinel) AwaitMaster(not *Redis) *Redis {
	s.group.t.Helper()
	return s.group.one(s.daemon.AwaitMaster(daemonOf(not)))
}

// AwaitReplica waits until a server follows the master that the Sentinels name.
func (s *Sentinel) AwaitReplica(r *Redis) {
	s.group.t.Helper()
	s.group.check(s.daemon.AwaitReplica(r.daemon))
}

// Failover makes the Sentinels replace the master by a replica, as for maintenance, and waits until the replica is the master. Unlike the
// failover of a Cluster, it may lose the last writes.
func (s *Sentinel) Failover() { s.group.t.Helper(); s.group.check(s.daemon.Failover()) }
