package capture

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/nemesis"
)

// The faults of a Cluster alone.
const (
	masterBack     = "SIGKILL of a master, back at once" // and empty, or with what its last SHUTDOWN SAVE has left
	masterRestart  = "SHUTDOWN SAVE of a master, and back"
	orderFailover  = "CLUSTER FAILOVER"
	takeOver       = "SIGKILL of a master, CLUSTER FAILOVER TAKEOVER"
	takeOverBehind = "the same, of a replica that lacks the last writes"
	slotMoves      = "a slot moves, key by key"
	slotWhole      = "a slot moves whole" // where the servers know CLUSTER MIGRATESLOTS
	slotStays      = "a slot's move is given up"
	slotTaken      = "a slot is taken without its keys"
)

const (
	hashTags = 15
	// lacking is how long a replica is kept from writes that it is to lack.
	lacking = 600 * time.Millisecond
)

// inCluster is three masters with a replica each.
type inCluster struct {
	lab    *lab
	daemon *testsupport.RedisClusterDaemon
	slots  [hashTags]int // of the tags
	// atomic: the servers know CLUSTER MIGRATESLOTS.
	atomic bool
	// moving is held while a slot is on its way; touched is guarded by it.
	moving  sync.Mutex
	touched [hashTags]time.Time // when its slot changed hands last
	// changing is held while a slot changes hands, and while a master may be replaced. Redis lets the higher epoch win if both
	// happen at once: a slot that has changed hands may come back at once, without its keys, which a capture does not notice
	// (DESIGN.md, What is not promised).
	changing sync.Mutex
	seen     testsupport.ClusterView // when masters was called last

	mu   sync.Mutex
	view *testsupport.ClusterView // nil: it is to be asked for
}

func startCluster(l *lab, opts ...testsupport.RedisOption) store {
	c := &inCluster{lab: l, daemon: testsupport.StartCluster(l.t, opts...).Daemon()}
	var err error
	if c.atomic, err = c.daemon.MovesWhole(); err != nil {
		l.t.Fatal(err)
	}
	for i := range c.slots {
		if c.slots[i], err = c.daemon.Slot(hashTag(i)); err != nil {
			l.t.Fatal(err)
		}
	}
	return c
}

func hashTag(i int) string { return fmt.Sprintf("{%d}", i) }

func (c *inCluster) yaml(int) string {
	return fmt.Sprintf(`cluster: ["%s"]`, strings.Join(c.daemon.Addresses(), `", "`))
}

func (c *inCluster) servers() []*testsupport.RedisDaemon { return c.daemon.Nodes() }

func (c *inCluster) masters() ([]*testsupport.RedisDaemon, error) {
	var err error
	c.seen, err = c.daemon.View()
	return c.seen.Masters(), err
}

// has is false of what a move that was given up has left behind.
func (c *inCluster) has(master *testsupport.RedisDaemon, key string) bool {
	for i, slot := range c.slots {
		if strings.Contains(key, hashTag(i)) {
			return c.seen.Owners[slot] == master
		}
	}
	return false
}

func (c *inCluster) draw(rng *rand.Rand) (tag string, master *testsupport.RedisDaemon, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view == nil {
		v, err := c.daemon.View()
		if err != nil {
			return "", nil, err
		}
		c.view = &v
	}
	i := rng.IntN(hashTags)
	if master = c.view.Owners[c.slots[i]]; master == nil {
		c.view = nil
		return "", nil, fmt.Errorf("no node has slot %d", c.slots[i])
	}
	return hashTag(i), master, nil
}

func (c *inCluster) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.view = nil
}

func (c *inCluster) traits() []nemesis.Trait {
	all := []nemesis.Trait{
		{Kind: masterBack, Place: "store", Weight: 1, Least: leases(0.05), Longest: leases(0.5)},
		{Kind: masterRestart, Place: "store", Weight: 1, Least: leases(1.5), Longest: leases(2)},
		{Kind: orderFailover, Place: "store", Weight: 2, Least: leases(0.5), Longest: leases(1)},
		{Kind: takeOver, Place: "store", Weight: 1, Least: leases(0.5), Longest: leases(3)},
		{Kind: takeOverBehind, Place: "store", Weight: 2, Least: leases(0.5), Longest: leases(3)},
		{Kind: slotMoves, Place: "slots", Weight: 6, Least: leases(0.1), Longest: leases(2)},
		{Kind: slotStays, Place: "slots", Weight: 1, Least: leases(0.1), Longest: leases(2)},
		{Kind: slotTaken, Place: "slots", Weight: 2, Least: leases(1), Longest: leases(1.5)},
	}
	if c.atomic {
		all = append(all, nemesis.Trait{Kind: slotWhole, Place: "slots", Weight: 12, Least: leases(0.1), Longest: leases(0.5)})
	}
	return all
}

func (c *inCluster) begin(f nemesis.Fault, master *testsupport.RedisDaemon) (target string, end func()) {
	switch f.Kind {
	case slotMoves, slotStays:
		return c.beginMove(f)
	case slotTaken:
		return c.give(f, "is taken by", c.daemon.TakeSlot), func() {}
	case slotWhole:
		return c.give(f, "has moved whole to", c.daemon.MoveSlot), func() {}
	}
	settled := c.unsettle()
	v, err := c.daemon.View()
	c.lab.ground(err)
	var replica *testsupport.RedisDaemon
	if all := v.Replicas[master]; len(all) == 1 && !c.lab.down[all[0]] {
		replica = all[0]
	}
	switch {
	case f.Kind == masterBack:
	case f.Kind == masterRestart:
		return master.Addr(), c.restart(master, settled)
	case replica == nil:
		return "which has no replica now", settled
	case f.Kind == orderFailover:
		c.lab.ask(replica, "CLUSTER", "FAILOVER")
		return replica.Addr(), settled
	case f.Kind == takeOverBehind:
		c.lab.ground(replica.Freeze())
		c.lab.ask(master, "CLIENT", "KILL", "TYPE", "replica") // what it would read once it is thawed
		c.lab.nemesis.Rest(lacking)
	}
	back := c.lab.kill(master)
	if f.Kind != masterBack {
		c.lab.ground(replica.Thaw())
		c.lab.ask(replica, "CLUSTER", "FAILOVER", "TAKEOVER")
	}
	return master.Addr(), func() { back(); settled() }
}

// restart ends a server in order, and starts it again with its data and its history.
func (c *inCluster) restart(master *testsupport.RedisDaemon, settled func()) (end func()) {
	c.lab.down[master] = true
	done := make(chan struct{})
	go func() {
		defer close(done)
		if conn, err := master.Dial(); err == nil {
			_, err := conn.Do("SHUTDOWN", "SAVE") // is answered with the end of the connection
			c.lab.Add("SHUTDOWN SAVE of %s: %v", master.Addr(), err)
			_ = conn.Close()
		}
		c.lab.ground(master.Restart())
	}()
	return func() {
		<-done
		delete(c.lab.down, master)
		settled()
	}
}

func (c *inCluster) unsettle() (settled func()) {
	c.changing.Lock()
	return c.changing.Unlock
}

func (c *inCluster) whole() error {
	for i := range c.slots {
		if err := c.daemon.GiveSlot(hashTag(i)); err != nil {
			return err
		}
	}
	if err := c.daemon.AwaitAgreement(); err != nil {
		return err
	}
	for i := range c.slots {
		if err := c.daemon.MendSlot(hashTag(i)); err != nil {
			return err
		}
	}
	return c.daemon.AwaitAgreement()
}
