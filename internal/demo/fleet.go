package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"baton/internal/config"
)

const (
	nodeCount = 3
	// pollEvery is the time within which the demo notices that a user has frozen a node.
	pollEvery = 50 * time.Millisecond
	// flushEvery is the schedule of the demo's jobs.
	flushEvery = 500 * time.Millisecond
)

// fleet contains the nodes of one run.
type fleet struct {
	nodes []*node
}

// newFleet makes the nodes; run starts them.
func newFleet(o Options, sc scene, dir string, s *server, d *database, events nodeEvents) (*fleet, error) {
	f := &fleet{}
	for i := range nodeCount {
		n := &node{
			id: nodeID(i), dir: dir, program: o.Program, environ: nodeEnviron(o.Environ), events: events, state: nodeDown,
		}
		n.config = nodeConfig(n.id, sc, s, d)
		if err := n.writeConfig(); err != nil {
			return nil, err
		}
		if err := n.config.WithDefaults().Validate(config.Checks{}); err != nil {
			return nil, fmt.Errorf("the nodes' configuration: %w", err)
		}
		f.nodes = append(f.nodes, n)
	}
	return f, nil
}

// nodeConfig returns the configuration of one node.
func nodeConfig(id string, sc scene, s *server, d *database) config.Config {
	return config.Config{
		Node:      config.Node{ID: id},
		Redis:     s.nodes,
		Election:  config.Election{LockKey: s.lockKey(), TTL: ttl},
		Databases: map[string]config.Database{"main": {Driver: d.driver, DSNInline: d.dsn}},
		Jobs:      sc.jobs(s),
	}
}

// run keeps the nodes running until ctx ends, and returns when all have ended.
func (f *fleet) run(ctx context.Context) {
	l := newLauncher()
	defer l.close()
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, n := range f.nodes {
		wg.Go(func() { n.supervise(ctx, l) })
	}
	wg.Go(func() {
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for _, n := range f.nodes {
				n.poll()
			}
		}
	})
}

// find returns the node with that name, or nil.
func (f *fleet) find(id string) *node {
	for _, n := range f.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

// exits returns how often nodes have ended without being killed by a signal, and one of these nodes.
func (f *fleet) exits() (count int, one *node) {
	for _, n := range f.nodes {
		n.mu.Lock()
		if n.exits > 0 {
			count, one = count+n.exits, n
		}
		n.mu.Unlock()
	}
	return count, one
}

func nodeID(i int) string { return fmt.Sprintf("node-%d", i+1) }
