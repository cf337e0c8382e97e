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
	// failoverWithin is generous: a failover takes one to three seconds on a calm
	// machine, and twice sentinelTimeout more if two Sentinels start one at once.
	failoverWithin  = 60 * time.Second
	sentinelTimeout = 2 * time.Second
)

// sentinelHaste shortens what Sentinel does once in some seconds, in milliseconds,
// and the half minute for which it does nothing after it has been held up itself.
// Shorter still, and it trips over itself: it takes no replica that it has not heard
// for five pings, hears them once a second during a failover, and turns a replica
// that says it is a master back after four publications of its own, which must leave
// the one who promoted it time to say so.
var sentinelHaste = []any{
	"info-period", 500, "ping-period", 500, "ask-period", 200, "publish-period", 700, "tilt-period", 1000,
}

// SentinelPassword makes the Sentinels ask for a password of their own.
func SentinelPassword(pw string) RedisOption {
	return func(o *redisOptions) { o.sentinelPassword = pw }
}

// SentinelDaemon is a master, two replicas and three Sentinels, for programs that
// are not tests.
type SentinelDaemon struct {
	redisGroup
	data, sentinels []*RedisDaemon
}

// RunSentinel starts them with their files below dir, or below the system's
// temporary directory if dir is empty. The options are those of the data servers;
// with RedisTLS the Sentinels speak TLS too.
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
	// Sentinel writes what it learns into this file.
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

// hasten is repeated at every start: Sentinel does not write these into its file.
func (r *RedisDaemon) hasten() error {
	if err := r.infoHas("server", fmt.Sprintf("process_id:%d", r.proc.Pid())); err != nil {
		return err
	}
	_, err := r.do("SENTINEL", append([]any{"DEBUG"}, sentinelHaste...)...)
	return err
}

// knowsAll is nil if a Sentinel knows the other two, and both replicas as ready to
// take over.
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

// Name is what the Sentinels call the master.
func (s *SentinelDaemon) Name() string { return sentinelMaster }

// Addresses are those of the Sentinels.
func (s *SentinelDaemon) Addresses() []string { return addresses(s.sentinels) }

// Sentinels are the three of them.
func (s *SentinelDaemon) Sentinels() []*RedisDaemon { return slices.Clone(s.sentinels) }

// Data are the three Redis servers; the first one was the first master.
func (s *SentinelDaemon) Data() []*RedisDaemon { return slices.Clone(s.data) }

// AwaitMaster waits until most Sentinels name a master that is not the given one
// (nil: any), and that server says so itself.
func (s *SentinelDaemon) AwaitMaster(not *RedisDaemon) (master *RedisDaemon, err error) {
	err = await(failoverWithin, "most Sentinels agree on a master that answers", func() error {
		if master, err = s.elected(); err != nil {
			return err
		}
		if master == not {
			return fmt.Errorf("it is %s as before", not.Addr())
		}
		return master.infoHas("replication", "role:master")
	})
	return master, err
}

// elected is the master that at least two Sentinels name.
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
			return r, nil // the third one may be down
		}
	}
	return nil, errors.Join(fmt.Errorf("they name (port: times) %v", votes), err)
}

// Failover has the Sentinels put a replica in the master's place, as for maintenance,
// and waits for it. Unlike a Cluster's, it may lose the last writes.
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
		// Refused while one is under way, and while no replica is fit; also tried again
		// when one was given up.
		_, refusal := leader.do("SENTINEL", "FAILOVER", sentinelMaster)
		return errors.Join(fmt.Errorf("the master is %s as before", old.Addr()), refusal)
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

// Sentinel is a private master with two replicas and three Sentinels, of one test.
// A master that is killed or frozen is replaced within one to three seconds; when
// it comes back it is a master for about three seconds, and then a replica.
type Sentinel struct {
	daemon *SentinelDaemon
	group  testGroup
}

// StartSentinel starts them; they are stopped at the test's end. The options are
// those of RunSentinel.
func StartSentinel(t testing.TB, opts ...RedisOption) *Sentinel {
	t.Helper()
	d, err := RunSentinel("", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return &Sentinel{daemon: d, group: newTestGroup(t, &d.redisGroup, d.Stop)}
}

// Daemon is the same with error returns.
func (s *Sentinel) Daemon() *SentinelDaemon { return s.daemon }

// Name is what the Sentinels call the master.
func (s *Sentinel) Name() string { return s.daemon.Name() }

// Addresses are those of the Sentinels.
func (s *Sentinel) Addresses() []string { return s.daemon.Addresses() }

// Sentinels are the three of them.
func (s *Sentinel) Sentinels() []*Redis { return s.group.all(s.daemon.sentinels) }

// Master is AwaitMaster(nil).
func (s *Sentinel) Master() *Redis { s.group.t.Helper(); return s.AwaitMaster(nil) }

// Replicas are the servers that are not Master, whether they run or not.
func (s *Sentinel) Replicas() []*Redis {
	s.group.t.Helper()
	master := s.Master()
	return slices.DeleteFunc(s.group.all(s.daemon.data), func(r *Redis) bool { return r == master })
}

// AwaitMaster waits until most Sentinels name a master that is not the given one
// (nil: any), and that server says so itself.
func (s *Sentinel) AwaitMaster(not *Redis) *Redis {
	s.group.t.Helper()
	return s.group.one(s.daemon.AwaitMaster(daemonOf(not)))
}

// AwaitReplica waits until a server follows the master that the Sentinels name.
func (s *Sentinel) AwaitReplica(r *Redis) {
	s.group.t.Helper()
	s.group.check(s.daemon.AwaitReplica(r.daemon))
}

// Failover has the Sentinels put a replica in the master's place, as for maintenance,
// and waits for it. Unlike a Cluster's, it may lose the last writes.
func (s *Sentinel) Failover() { s.group.t.Helper(); s.group.check(s.daemon.Failover()) }
