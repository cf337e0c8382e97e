package testsupport

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	clusterMasters     = 3
	clusterSlots       = 16384
	clusterNodeTimeout = 1500 * time.Millisecond
	// patientNodeTimeout is how long a node of a test's own Cluster must be silent before it is considered dead. This applies until the
	// test waits for a failover. The time is long, because a node may get no processor time for some seconds.
	patientNodeTimeout = time.Minute
)

// RedisClusterDaemon is a Redis Cluster of three masters with a replica each, for
// programs that are not tests.
type RedisClusterDaemon struct {
	redisGroup
}

// RunCluster starts a Cluster of six nodes with its files below dir, or below the system's temporary
// directory if dir is empty. With RedisTLS the nodes speak TLS to each other too.
func RunCluster(dir string, opts ...RedisOption) (*RedisClusterDaemon, error) {
	c := &RedisClusterDaemon{}
	if err := c.run(dir, opts); err != nil {
		return nil, c.fail(fmt.Errorf("start a Redis Cluster: %w", err))
	}
	return c, nil
}

func (c *RedisClusterDaemon) run(dir string, opts []RedisOption) error {
	opts, err := c.share(dir, opts)
	if err != nil {
		return err
	}
	opts = append(slices.Clip(opts), RedisClusterNode(), RedisArgs(
		"--cluster-node-timeout", fmt.Sprint(clusterNodeTimeout.Milliseconds()),
		"--cluster-replica-validity-factor", "0", // a replica takes over, however long it was cut off from its master
		"--cluster-allow-replica-migration", "no")) // a replica keeps its master
	if _, err := c.add(2*clusterMasters, func(int) (*RedisDaemon, error) { return RunRedis(dir, opts...) }); err != nil {
		return err
	}
	if err := c.form(); err != nil {
		return err
	}
	return await(readyWithin, "every node sees the whole Cluster in order", func() error {
		return each(c.members, seesAll)
	})
}

// form makes one Cluster of the nodes: node i+3 becomes the replica of node i.
func (c *RedisClusterDaemon) form() error {
	for i, r := range c.members {
		// redis-cli does the same: if masters had the same epoch, they would have to resolve that conflict before the Cluster is ready.
		if _, err := r.do("CLUSTER", "SET-CONFIG-EPOCH", i+1); err != nil {
			return err
		}
		if i < clusterMasters {
			first, last := clusterSlots*i/clusterMasters, clusterSlots*(i+1)/clusterMasters-1
			if _, err := r.do("CLUSTER", "ADDSLOTSRANGE", first, last); err != nil {
				return err
			}
		}
		for _, other := range c.members[:i] {
			if _, err := r.do("CLUSTER", "MEET", "127.0.0.1", other.port, other.bus.bus); err != nil {
				return err
			}
		}
	}
	for i, replica := range c.members[clusterMasters:] {
		id, err := redis.String(c.members[i].do("CLUSTER", "MYID"))
		if err != nil {
			return err
		}
		err = await(readyWithin, "the nodes have met", func() error {
			_, err := replica.do("CLUSTER", "REPLICATE", id)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// seesAll returns nil if a node sees three masters and their replicas, and has a link to each of these nodes.
func seesAll(r *RedisDaemon) error {
	if err := r.clusterOK(); err != nil {
		return err
	}
	nodes, err := r.clusterNodes()
	if err != nil {
		return err
	}
	replicas := map[string]int{}
	for _, n := range nodes {
		if n.troubled() {
			return fmt.Errorf("it sees %s as %v", n.addr, n.flags)
		}
		if n.is("slave") {
			replicas[n.master]++
		}
		if n.is("myself") && n.is("slave") {
			if err := r.infoHas("replication", "master_link_status:up"); err != nil {
				return err
			}
		}
	}
	if len(nodes) != 2*clusterMasters || len(replicas) != clusterMasters {
		return fmt.Errorf("it sees %d nodes, %d masters with a replica", len(nodes), len(replicas))
	}
	return nil
}

// Nodes returns all six nodes.
func (c *RedisClusterDaemon) Nodes() []*RedisDaemon { return slices.Clone(c.members) }

// Addresses returns the addresses of all six nodes.
func (c *RedisClusterDaemon) Addresses() []string { return addresses(c.members) }

// AwaitOwner waits until a master other than the given node serves key. If the node is nil, AwaitOwner accepts any master.
func (c *RedisClusterDaemon) AwaitOwner(key string, not *RedisDaemon) (owner *RedisDaemon, err error) {
	slot, err := c.Slot(key)
	if err != nil {
		return nil, err
	}
	if not != nil {
		_ = c.setNodeTimeout(clusterNodeTimeout) // fails for the node that was killed
	}
	err = await(failoverWithin, fmt.Sprintf("a node serves %q", key), func() error {
		if owner, err = c.claimant(slot); err != nil {
			return err
		}
		if owner == not {
			return fmt.Errorf("%s still serves it", not.Addr())
		}
		return owner.clusterOK()
	})
	return owner, err
}

// setNodeTimeout sets how long a node must be silent before the others consider it dead.
func (c *RedisClusterDaemon) setNodeTimeout(d time.Duration) error {
	return each(c.members, func(r *RedisDaemon) error {
		_, err := r.do("CONFIG", "SET", "cluster-node-timeout", d.Milliseconds())
		return err
	})
}

// claimant returns the master that claims the slot with the highest epoch. A master that was replaced may also claim the slot, until it
// learns of the replacement.
func (c *RedisClusterDaemon) claimant(slot int) (*RedisDaemon, error) {
	var mu sync.Mutex
	var owner *RedisDaemon
	newest := int64(-1)
	err := each(c.members, func(r *RedisDaemon) error {
		me, err := r.clusterSelf()
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if me.is("master") && me.has(slot) && me.epoch > newest {
			owner, newest = r, me.epoch
		}
		return nil
	})
	if owner == nil {
		return nil, errors.Join(fmt.Errorf("no node has slot %d", slot), err)
	}
	return owner, nil // the other nodes may be down
}

// ReplicaOf returns the replica of the master that serves key.
func (c *RedisClusterDaemon) ReplicaOf(key string) (*RedisDaemon, error) {
	owner, err := c.AwaitOwner(key, nil)
	if err != nil {
		return nil, err
	}
	me, err := owner.clusterSelf()
	if err != nil {
		return nil, err
	}
	for _, r := range c.members {
		if n, err := r.clusterSelf(); err == nil && n.is("slave") && n.master == me.id {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%s, which serves %q, has no replica that answers", owner.Addr(), key)
}

// AwaitWhole waits until all six nodes see three masters with a replica each. Call it after a failover, once the old master runs again.
func (c *RedisClusterDaemon) AwaitWhole() error {
	return await(failoverWithin, "every node sees the whole Cluster in order", func() error {
		return each(c.members, seesAll)
	})
}

// Failover replaces the master that serves key by the replica of that master, in an orderly way, as for maintenance. No write is lost.
func (c *RedisClusterDaemon) Failover(key string) error {
	owner, err := c.AwaitOwner(key, nil)
	if err != nil {
		return err
	}
	replica, err := c.ReplicaOf(key)
	if err != nil {
		return err
	}
	if _, err := replica.do("CLUSTER", "FAILOVER"); err != nil {
		return err
	}
	_, err = c.AwaitOwner(key, owner)
	return err
}

// Slot asks the nodes for the slot of a key, and returns the first answer.
func (c *RedisClusterDaemon) Slot(key string) (slot int, err error) {
	for _, r := range c.members {
		if slot, err = redis.Int(r.do("CLUSTER", "KEYSLOT", key)); err == nil {
			return slot, nil
		}
	}
	return 0, err
}

// RedisCluster is a Redis Cluster for one test alone. After a test has killed or frozen a master, the test must call AwaitOwner with that
// master. The replica then takes over within two to five seconds.
type RedisCluster struct {
	daemon *RedisClusterDaemon
	group  testGroup
}

// StartCluster returns an empty Cluster of six nodes: three masters with a replica each. No other test uses the nodes until this test ends.
// If an earlier test of this process has used them (see redislease.go), slots may belong to other masters than at first.
func StartCluster(t testing.TB, opts ...RedisOption) *RedisCluster {
	t.Helper()
	d, end, err := shared.redis.leaseCluster(opts)
	if err != nil {
		t.Fatal(err)
	}
	return &RedisCluster{daemon: d, group: newTestGroup(t, &d.redisGroup, end)}
}

// Daemon returns the Cluster as a RedisClusterDaemon, whose methods return errors instead of failing the test.
func (c *RedisCluster) Daemon() *RedisClusterDaemon { return c.daemon }

// Nodes returns all six nodes.
func (c *RedisCluster) Nodes() []*Redis { return c.group.all(c.daemon.members) }

// Addresses returns the addresses of all six nodes.
func (c *RedisCluster) Addresses() []string { return c.daemon.Addresses() }

// Owner returns the master that serves key, like AwaitOwner(key, nil).
func (c *RedisCluster) Owner(key string) *Redis { c.group.t.Helper(); return c.AwaitOwner(key, nil) }

// AwaitOwner waits until a master other than the given node serves key. If the node is nil, AwaitOwner accepts any master.
func (c *RedisCluster) AwaitOwner(key string, not *Redis) *Redis {
	c.group.t.Helper()
	return c.group.one(c.daemon.AwaitOwner(key, daemonOf(not)))
}

// ReplicaOf returns the replica of the master that serves key.
func (c *RedisCluster) ReplicaOf(key string) *Redis {
	c.group.t.Helper()
	return c.group.one(c.daemon.ReplicaOf(key))
}

// AwaitWhole waits until all six nodes see three masters with a replica each.
func (c *RedisCluster) AwaitWhole() { c.group.t.Helper(); c.group.check(c.daemon.AwaitWhole()) }

// Failover replaces the master that serves key by the replica of that master, in an orderly way, as for maintenance. No write is lost.
func (c *RedisCluster) Failover(key string) {
	c.group.t.Helper()
	c.group.check(c.daemon.Failover(key))
}
