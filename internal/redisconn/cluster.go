package redisconn

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"
)

// cluster maps the slots of a Redis Cluster to their masters. If the map is old, a command reaches the wrong node. That node answers
// MOVED, which corrects the map.
type cluster struct {
	store *Store
	seeds []string // the configured nodes
	// refreshing is held by the goroutine that asks the nodes for their map.
	refreshing chan struct{}

	mu      sync.Mutex
	owners  []string           // master of each slot, "" for none; nil before the first answer
	nodes   []string           // all known nodes, replicas too
	servers map[string]*Server // by address
	stale   bool               // the nodes must be asked before the next use
	turn    int                // the node to ask first; it changes, because a node that is cut off may have an old map
}

func (s *Store) openCluster(addresses []string) error {
	c := &cluster{
		store: s, seeds: addresses, stale: true,
		refreshing: make(chan struct{}, 1), servers: map[string]*Server{},
	}
	for _, a := range addresses {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("redis cluster node %q: the address must have the form host:port", a)
		}
	}
	s.host = fmt.Sprintf("cluster %s", strings.Join(addresses, ", "))
	s.cluster = c
	return nil
}

// at returns the node with the given address.
func (c *cluster) at(address string) *Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.serverAt(address)
}

func (c *cluster) serverAt(address string) *Server {
	s := c.servers[address]
	if s == nil {
		s = newServer(address, func(ctx context.Context) (*wire, error) {
			return c.store.connect(ctx, serverAddress{network: "tcp", address: address})
		}, ping)
		s.suspect = c.suspect
		c.servers[address] = s
	}
	return s
}

// suspect marks the map of slots as stale, so that the next use of the map asks the nodes again.
func (c *cluster) suspect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = true
}

// moved records that a node has answered MOVED for a slot. Other slots may also have moved, so moved marks the map as stale.
func (c *cluster) moved(slot int, address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owners != nil {
		c.owners[slot] = address
	}
	c.stale = true
}

// owner returns the master of a slot. If the map is stale, owner first asks the nodes for a new one.
func (c *cluster) owner(ctx context.Context, slot int) (*Server, error) {
	var problem error
	if node, stale := c.lookup(slot); stale || node == nil { // another goroutine may be asking now
		problem = c.refresh(ctx)
	}
	node, _ := c.lookup(slot)
	switch {
	case node != nil:
		return node, nil // the old entry may be right even if no node answered
	case problem != nil:
		return nil, fmt.Errorf("no node of the redis cluster answers with its slots: %w", problem)
	}
	c.suspect() // no node serves the slot: ask again next time
	return nil, Explain(redis.Error(fmt.Sprintf("CLUSTERDOWN no node serves slot %d", slot)))
}

func (c *cluster) lookup(slot int) (node *Server, stale bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owners != nil && c.owners[slot] != "" {
		node = c.serverAt(c.owners[slot])
	}
	return node, c.stale
}

// refresh asks the nodes one after the other for the slots and their masters, until one node answers.
func (c *cluster) refresh(ctx context.Context) error {
	select {
	case c.refreshing <- struct{}{}:
		defer func() { <-c.refreshing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c.mu.Lock()
	stale, candidates := c.stale, slices.Clone(c.nodes)
	c.turn++
	if n := len(candidates); n > 0 {
		candidates = append(candidates[c.turn%n:], candidates[:c.turn%n]...)
	}
	for _, seed := range c.seeds {
		if !slices.Contains(candidates, seed) {
			candidates = append(candidates, seed)
		}
	}
	c.stale = false // a MOVED from now on may be newer than the answer
	c.mu.Unlock()
	if !stale {
		return nil // another goroutine has just asked
	}
	found, _, err := firstOf(ctx, candidates, c.store.patience(), c.ask)
	if err != nil {
		c.suspect()
		return err
	}
	c.learn(found)
	return nil
}

// layout is the Cluster's map of slots from one node's view.
type layout struct {
	owners []string
	nodes  []string
}

func (c *cluster) learn(l layout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owners, c.nodes = l.owners, l.nodes
	for address, s := range c.servers {
		if !slices.Contains(l.nodes, address) {
			s.close()
			delete(c.servers, address)
		}
	}
}

// ask asks one node for its map of slots. It opens a new connection each time, because the map is rarely needed.
func (c *cluster) ask(ctx context.Context, address string) (layout, error) {
	conn, err := c.store.connect(ctx, serverAddress{network: "tcp", address: address})
	if err != nil {
		return layout{}, err
	}
	defer conn.Close() // its only command is done
	ranges, err := redis.Values(redis.DoContext(conn, ctx, "CLUSTER", "SLOTS"))
	if err != nil {
		return layout{}, fmt.Errorf("ask redis %s for the slots of its cluster: %w", address, Explain(err))
	}
	l := layout{owners: make([]string, slotCount)}
	for _, r := range ranges {
		if err := l.add(r, address); err != nil {
			return layout{}, fmt.Errorf("redis %s: unexpected reply to CLUSTER SLOTS: %w", address, err)
		}
	}
	if len(l.nodes) == 0 {
		return layout{}, fmt.Errorf("redis %s is in cluster mode, but no node serves a slot", address)
	}
	return l, nil
}

// add reads one range of the reply of CLUSTER SLOTS: its first and its last slot, the master, and the replicas.
func (l *layout) add(reply any, asked string) error {
	var first, last int
	parts, err := redis.Values(reply, nil)
	if err == nil {
		parts, err = redis.Scan(parts, &first, &last)
	}
	if err != nil {
		return err
	}
	if first < 0 || last >= slotCount || len(parts) == 0 {
		return fmt.Errorf("slots %d to %d of %d nodes", first, last, len(parts))
	}
	for i, part := range parts {
		var host string
		var port int
		node, err := redis.Values(part, nil)
		if err == nil {
			_, err = redis.Scan(node, &host, &port)
		}
		if err != nil {
			return err
		}
		address := nodeAddress(host, strconv.Itoa(port), asked)
		if i == 0 {
			for slot := first; slot <= last; slot++ {
				l.owners[slot] = address
			}
		}
		if !slices.Contains(l.nodes, address) {
			l.nodes = append(l.nodes, address)
		}
	}
	return nil
}

// nodeAddress returns the address in a node's reply. An empty host means the host of the node that answered.
func nodeAddress(host, port, asked string) string {
	if host == "" || host == "?" {
		host, _, _ = net.SplitHostPort(asked)
	}
	return net.JoinHostPort(host, port)
}

func (c *cluster) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		s.close()
	}
}

// owning asks the nodes for all masters that have slots. It fails if a slot has no master.
func (c *cluster) owning(ctx context.Context) ([]*Server, error) {
	c.suspect()
	if err := c.refresh(ctx); err != nil {
		return nil, fmt.Errorf("no node of the redis cluster answers with its slots: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var masters []*Server
	for slot, address := range c.owners {
		if address == "" {
			return nil, Explain(redis.Error(fmt.Sprintf("CLUSTERDOWN no node serves slot %d", slot)))
		}
		if node := c.serverAt(address); !slices.Contains(masters, node) {
			masters = append(masters, node)
		}
	}
	return masters, nil
}
