package testsupport

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// clusterNode is one line in the reply of CLUSTER NODES, which describes one node.
type clusterNode struct {
	id, addr string
	flags    []string
	master   string // the master's id, if the node is a replica
	epoch    int64
	linked   bool
	slots    [][2]int // pairs of first and last slot
}

func (n clusterNode) is(flag string) bool { return slices.Contains(n.flags, flag) }

// troubled reports whether a node is not yet, or no longer, a full member of the Cluster.
func (n clusterNode) troubled() bool {
	return n.is("handshake") || n.is("fail") || n.is("fail?") || n.is("noaddr") || !n.linked
}

func (n clusterNode) has(slot int) bool {
	return slices.ContainsFunc(n.slots, func(s [2]int) bool { return s[0] <= slot && slot <= s[1] })
}

// parseClusterNode reads "id addr@bus flags master ping pong epoch link slot...".
func parseClusterNode(line string) (clusterNode, error) {
	f := strings.Fields(line)
	if len(f) < 8 {
		return clusterNode{}, fmt.Errorf("a line of CLUSTER NODES has %d fields: %q", len(f), line)
	}
	addr, _, _ := strings.Cut(f[1], "@")
	n := clusterNode{id: f[0], addr: addr, flags: strings.Split(f[2], ","), master: f[3], linked: f[7] == "connected"}
	var err error
	if n.epoch, err = strconv.ParseInt(f[6], 10, 64); err != nil {
		return clusterNode{}, fmt.Errorf("epoch in CLUSTER NODES: %w", err)
	}
	for _, s := range f[8:] {
		if strings.HasPrefix(s, "[") {
			continue // this slot is being moved from or to another node
		}
		first, last, isRange := strings.Cut(s, "-")
		if !isRange {
			last = first
		}
		a, errA := strconv.Atoi(first)
		b, errB := strconv.Atoi(last)
		if errA != nil || errB != nil {
			return clusterNode{}, fmt.Errorf("slots in CLUSTER NODES: %q", s)
		}
		n.slots = append(n.slots, [2]int{a, b})
	}
	return n, nil
}

// busPort is the port of a Cluster node and the port of its bus, which the other nodes connect to. By default Redis uses port plus 10000
// for the bus, and that port may be in Linux' range of ephemeral ports.
type busPort struct{ port, bus int }

// beside returns a free port for the bus of a node at the given port. It returns the same bus port until the node's port changes.
func (b *busPort) beside(port int) int {
	if b.port == port {
		return b.bus
	}
	bus, err := freePort()
	if err != nil {
		bus = port + 10000 // if that port is also taken, the server reports the error
	}
	b.port, b.bus = port, bus
	return bus
}

// clusterNodes returns the Cluster as this node sees it.
func (r *RedisDaemon) clusterNodes() ([]clusterNode, error) {
	text, err := redis.String(r.do("CLUSTER", "NODES"))
	if err != nil {
		return nil, err
	}
	var nodes []clusterNode
	for line := range strings.Lines(text) {
		n, err := parseClusterNode(line)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// clusterSelf returns this node as it sees itself.
func (r *RedisDaemon) clusterSelf() (clusterNode, error) {
	nodes, err := r.clusterNodes()
	if err != nil {
		return clusterNode{}, err
	}
	i := slices.IndexFunc(nodes, func(n clusterNode) bool { return n.is("myself") })
	if i < 0 {
		return clusterNode{}, fmt.Errorf("%s is not in its own CLUSTER NODES", r.Addr())
	}
	return nodes[i], nil
}

// clusterOK returns nil if the node sees the state of the Cluster as ok, so that it serves its slots.
func (r *RedisDaemon) clusterOK() error {
	info, err := redis.String(r.do("CLUSTER", "INFO"))
	if err == nil && !strings.Contains(info, "cluster_state:ok") {
		err = fmt.Errorf("%s says:\n%s", r.Addr(), info)
	}
	return err
}

// SlotMove is the move of a slot from one master to another. The keys of the slot move one by one while both masters serve the slot. The
// old owner redirects clients to the new owner (ASK) for keys that have already moved. A client must retry a script that uses both moved
// and other keys (TRYAGAIN).
type SlotMove struct {
	cluster      *RedisClusterDaemon
	slot         int
	from, to     *RedisDaemon
	fromID, toID string
}

func (c *RedisClusterDaemon) newMove(key string, to *RedisDaemon) (*SlotMove, error) {
	from, err := c.AwaitOwner(key, nil)
	if err != nil {
		return nil, err
	}
	m := &SlotMove{cluster: c, from: from, to: to}
	if m.slot, err = c.Slot(key); err != nil {
		return nil, err
	}
	if m.fromID, err = redis.String(from.do("CLUSTER", "MYID")); err != nil {
		return nil, err
	}
	m.toID, err = redis.String(to.do("CLUSTER", "MYID"))
	return m, err
}

// BeginMove starts the move of the slot of key. It moves no key yet.
func (c *RedisClusterDaemon) BeginMove(key string, to *RedisDaemon) (*SlotMove, error) {
	m, err := c.newMove(key, to)
	if err != nil {
		return nil, err
	}
	if err := m.importing(); err != nil {
		return nil, err
	}
	_, err = m.from.do("CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.toID)
	return m, err
}

func (m *SlotMove) importing() error {
	_, err := m.to.do("CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.fromID)
	return err
}

// MoveKeys moves some keys of the slot, with their remaining time to live.
func (m *SlotMove) MoveKeys(keys ...string) error { return m.migrate(nil, keys) }

func (m *SlotMove) migrate(options, keys []string) error {
	args := redis.Args{"127.0.0.1", m.to.port, "", 0, 5000}.AddFlat(options)
	if m.to.password != "" {
		args = args.Add("AUTH", m.to.password)
	}
	_, err := m.from.do("MIGRATE", args.Add("KEYS").AddFlat(keys)...)
	return err
}

// Keys returns up to n keys that have not moved yet.
func (m *SlotMove) Keys(n int) ([]string, error) {
	return redis.Strings(m.from.do("CLUSTER", "GETKEYSINSLOT", m.slot, n))
}

func (m *SlotMove) moveRest(options ...string) error {
	for {
		keys, err := m.Keys(100)
		if err != nil || len(keys) == 0 {
			return err
		}
		if err := m.migrate(options, keys); err != nil {
			return err
		}
	}
}

// Finish moves the remaining keys, and makes the new master the only owner of the slot.
func (m *SlotMove) Finish() error {
	if err := m.moveRest(); err != nil {
		return err
	}
	// The new owner is told first, because the old owner ends the move when it learns of the new owner.
	for _, r := range append([]*RedisDaemon{m.to, m.from}, m.cluster.members...) {
		if me, err := r.clusterSelf(); err != nil || me.is("slave") {
			continue // a replica, or a node that is down, learns it from the others
		}
		if _, err := r.do("CLUSTER", "SETSLOT", m.slot, "NODE", m.toID); err != nil {
			return err
		}
	}
	return nil
}

// MoveSlot moves the slot of key with all its keys to a master while clients use the slot. It uses the method of the servers: Valkey 9
// moves a whole slot, earlier servers move the keys by MIGRATE.
func (c *RedisClusterDaemon) MoveSlot(key string, to *RedisDaemon) error {
	whole, err := c.MovesWhole()
	if err != nil {
		return err
	}
	if whole {
		// The server refuses to move a whole slot while the keys of another slot move one by one.
		if err := c.moveWhole(key, to); err == nil || !strings.Contains(err.Error(), "being manually") {
			return err
		}
	}
	m, err := c.BeginMove(key, to)
	if err != nil {
		return err
	}
	return m.Finish()
}

// MovesWhole reports whether the servers have the command CLUSTER MIGRATESLOTS.
func (c *RedisClusterDaemon) MovesWhole() (bool, error) {
	known, err := redis.Values(c.members[0].do("COMMAND", "INFO", "cluster|migrateslots"))
	return len(known) == 1 && known[0] != nil, err
}

// moveWhole makes the owner of a slot give the slot to another master. The owner copies the keys and sends their changes, as to a replica.
// When no change is left, the owner transfers the slot. moveWhole returns once all nodes know the new owner.
func (c *RedisClusterDaemon) moveWhole(key string, to *RedisDaemon) error {
	m, err := c.newMove(key, to)
	if err != nil {
		return err
	}
	if _, err := m.from.do("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", m.slot, m.slot, "NODE", m.toID); err != nil {
		return err
	}
	var failed error
	return errors.Join(await(failoverWithin, fmt.Sprintf("slot %d has moved", m.slot), func() error {
		me, err := to.clusterSelf()
		if err == nil && !me.has(m.slot) {
			err = fmt.Errorf("%s does not have the slot yet", to.Addr())
		}
		if err != nil {
			failed = m.failed()
		}
		if failed != nil {
			return nil //nolint:nilerr // the server gave the move up: failed is returned
		}
		return errors.Join(err, c.NodesAgree())
	}), failed)
}

// failed returns the reason why the latest move of the slot has failed. It returns nil if the move has not failed, or if the servers do not
// say.
func (m *SlotMove) failed() error {
	moves, _ := redis.Values(m.from.do("CLUSTER", "GETSLOTMIGRATIONS")) // the reply begins with the latest move
	for _, move := range moves {
		fields, _ := redis.Values(move, nil)
		of := map[string]string{}
		for i := 0; i+1 < len(fields); i += 2 {
			name, _ := redis.String(fields[i], nil)
			of[name], _ = redis.String(fields[i+1], nil) // the fields of interest are texts, so a number may become ""
		}
		if of["operation"] != "EXPORT" || of["slot_ranges"] != fmt.Sprintf("%d-%d", m.slot, m.slot) {
			continue
		}
		if of["state"] == "failed" || of["state"] == "canceled" {
			return fmt.Errorf("the move of slot %d is %s: %s", m.slot, of["state"], of["message"])
		}
		return nil
	}
	return nil
}

// AwaitAgreement waits until all nodes serve their slots and know the owner of each slot. It does not need a replica of each master.
func (c *RedisClusterDaemon) AwaitAgreement() error {
	return await(failoverWithin, "the nodes agree on who serves what", func() error {
		if err := each(c.members, (*RedisDaemon).clusterOK); err != nil {
			return err
		}
		return c.NodesAgree()
	})
}

// agree waits until all nodes see the whole Cluster, and the same master for each slot.
func (c *RedisClusterDaemon) agree(within time.Duration) error {
	return await(within, "the nodes agree on who serves what", func() error {
		if err := each(c.members, seesAll); err != nil {
			return err
		}
		var mu sync.Mutex
		views := map[string]bool{}
		err := each(c.members, func(r *RedisDaemon) error {
			nodes, err := r.clusterNodes()
			if err != nil {
				return err
			}
			var view []string
			for _, n := range nodes {
				view = append(view, fmt.Sprint(n.addr, n.master, n.slots))
			}
			slices.Sort(view)
			mu.Lock()
			defer mu.Unlock()
			views[strings.Join(view, "\n")] = true
			return nil
		})
		if err == nil && len(views) > 1 {
			err = fmt.Errorf("the nodes see the cluster in %d different ways", len(views))
		}
		return err
	})
}

// MoveSlot moves the slot of key with all its keys to a master while clients use the slot.
func (c *RedisCluster) MoveSlot(key string, to *Redis) {
	c.group.t.Helper()
	c.group.check(c.daemon.MoveSlot(key, to.daemon))
}

// BeginMove starts the move of the slot of key. It moves no key yet.
func (c *RedisCluster) BeginMove(key string, to *Redis) *SlotMove {
	c.group.t.Helper()
	m, err := c.daemon.BeginMove(key, to.daemon)
	c.group.check(err)
	return m
}

// AwaitAgreement waits until all nodes know the owner of each slot.
func (c *RedisCluster) AwaitAgreement() {
	c.group.t.Helper()
	c.group.check(c.daemon.agree(failoverWithin))
}
