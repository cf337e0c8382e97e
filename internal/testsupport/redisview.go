package testsupport

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"
)

// ClusterView is the state of a Cluster as one of its nodes sees it.
type ClusterView struct {
	// Owners contains the master of each slot, or nil for a slot without a master.
	Owners []*RedisDaemon
	// Replicas contains the replicas of each master.
	Replicas map[*RedisDaemon][]*RedisDaemon
}

// Masters returns the masters that own slots, in the order of their slots.
func (v ClusterView) Masters() (all []*RedisDaemon) {
	for _, r := range v.Owners {
		if r != nil && !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}

// View returns the Cluster as one of its nodes sees it, whatever the state of the other nodes. That node is the first one that answers, and
// may not know the latest changes yet.
func (c *RedisClusterDaemon) View() (ClusterView, error) {
	type answer struct {
		nodes []clusterNode
		err   error
	}
	answers := make(chan answer, len(c.members))
	for _, r := range c.members {
		go func() {
			nodes, err := r.clusterNodes()
			answers <- answer{nodes, err}
		}()
	}
	var errs []error
	for range c.members {
		a := <-answers
		if a.err == nil {
			return c.view(a.nodes), nil
		}
		errs = append(errs, a.err)
	}
	return ClusterView{}, fmt.Errorf("no node of the Cluster answers: %w", errors.Join(errs...))
}

func (c *RedisClusterDaemon) view(nodes []clusterNode) ClusterView {
	v := ClusterView{Owners: make([]*RedisDaemon, clusterSlots), Replicas: map[*RedisDaemon][]*RedisDaemon{}}
	byID := map[string]*RedisDaemon{}
	for _, n := range nodes {
		byID[n.id] = c.at(n.addr)
	}
	for _, n := range nodes {
		for _, s := range n.slots {
			for slot := s[0]; slot <= s[1]; slot++ {
				v.Owners[slot] = byID[n.id]
			}
		}
		if master := byID[n.master]; master != nil {
			v.Replicas[master] = append(v.Replicas[master], byID[n.id])
		}
	}
	return v
}

// at returns the node with an address. It compares only the ports, because a node that has just started may not know its own host.
func (c *RedisClusterDaemon) at(addr string) *RedisDaemon {
	_, port, _ := strings.Cut(addr, ":")
	if i := slices.IndexFunc(c.members, func(r *RedisDaemon) bool { return fmt.Sprint(r.port) == port }); i >= 0 {
		return c.members[i]
	}
	return nil
}

// NodesAgree returns nil if all nodes that answer see the same masters with the same slots: no failover is under way, and no change of
// slots is still spreading.
func (c *RedisClusterDaemon) NodesAgree() error {
	var mu sync.Mutex
	views := map[string]string{} // the views, each with one node that has it
	err := each(c.members, func(r *RedisDaemon) error {
		nodes, err := r.clusterNodes()
		if err != nil {
			return nil // if this node is a master, the views of the other nodes show its absence
		}
		var view []string
		for _, n := range nodes {
			switch {
			case !n.is("master") || len(n.slots) == 0:
				continue
			case !n.is("myself") && n.troubled():
				return fmt.Errorf("it sees %s as %v", n.addr, n.flags)
			}
			view = append(view, fmt.Sprint(n.id, " has ", n.slots))
		}
		slices.Sort(view)
		mu.Lock()
		defer mu.Unlock()
		views[strings.Join(view, ", ")] = r.Addr()
		return nil
	})
	if err == nil && len(views) != 1 {
		err = fmt.Errorf("the nodes see the cluster in %d different ways: %v", len(views), views)
	}
	return err
}

// TakeSlot makes a master the owner of the slot of key without a move. The keys stay with the old owner, which deletes them when it
// learns of the change.
func (c *RedisClusterDaemon) TakeSlot(key string, to *RedisDaemon) error {
	m, err := c.newMove(key, to)
	if err != nil {
		return err
	}
	if err := m.importing(); err != nil { // otherwise the epoch of the new owner does not change
		return err
	}
	_, err = to.do("CLUSTER", "SETSLOT", m.slot, "NODE", m.toID)
	return err
}

// GiveSlot gives the slot of key to a master if no master owns the slot. A slot can lose its owner if it changes its owner during a
// failover. GiveSlot first ends unfinished moves of the slot. Otherwise a master that still imports the slot would never learn who owns it,
// and would not serve it. GiveSlot waits until all nodes answer.
func (c *RedisClusterDaemon) GiveSlot(key string) error {
	slot, err := c.Slot(key)
	if err != nil {
		return err
	}
	var masters []clusterNode
	had := false
	err = await(failoverWithin, "all nodes answer", func() error {
		var mu sync.Mutex
		masters, had = nil, false
		return each(c.members, func(r *RedisDaemon) error {
			me, err := r.clusterSelf()
			if err != nil {
				return err
			}
			if !me.is("master") {
				return nil
			}
			mu.Lock()
			masters, had = append(masters, me), had || me.has(slot)
			mu.Unlock()
			_, err = r.do("CLUSTER", "SETSLOT", slot, "STABLE")
			return err
		})
	})
	if err != nil || had || len(masters) < 2 {
		return err
	}
	to := c.at(masters[0].addr)
	if _, err := to.do("CLUSTER", "SETSLOT", slot, "IMPORTING", masters[1].id); err != nil { // see TakeSlot
		return err
	}
	_, err = to.do("CLUSTER", "SETSLOT", slot, "NODE", masters[0].id)
	return err
}

// MendSlot ends the unfinished moves of the slot of key, as `redis-cli --cluster fix` does: it moves the keys that other masters hold to
// the owner.
func (c *RedisClusterDaemon) MendSlot(key string) error {
	slot, err := c.Slot(key)
	if err != nil {
		return err
	}
	v, err := c.View()
	if err != nil {
		return err
	}
	owner := v.Owners[slot]
	if owner == nil {
		return fmt.Errorf("no node has slot %d", slot)
	}
	id, err := redis.String(owner.do("CLUSTER", "MYID"))
	if err != nil {
		return err
	}
	if _, err := owner.do("CLUSTER", "SETSLOT", slot, "STABLE"); err != nil { // otherwise it answers only ASK
		return err
	}
	for _, r := range v.Masters() {
		if r == owner {
			continue
		}
		// In this state the node accepts a MIGRATE command for a slot of another master.
		if _, err := r.do("CLUSTER", "SETSLOT", slot, "IMPORTING", id); err != nil {
			return err
		}
		m := &SlotMove{cluster: c, slot: slot, from: r, to: owner}
		if err := m.moveRest("REPLACE"); err != nil {
			return err
		}
		if _, err := r.do("CLUSTER", "SETSLOT", slot, "STABLE"); err != nil {
			return err
		}
	}
	return nil
}
