package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"baton/internal/config"
	"baton/internal/flush/source/spec"
)

const (
	nodeCount = 3
	// pollEvery is how soon a node is noticed that a user has frozen.
	pollEvery = 50 * time.Millisecond
	// flushEvery is the schedule of the demo's jobs.
	flushEvery = 500 * time.Millisecond
)

// fleet is the nodes of one run.
type fleet struct {
	nodes []*node
	http  *http.Client
}

// newFleet describes the nodes; run starts them.
func newFleet(o Options, dir string, s *server, d *database, events nodeEvents) (*fleet, error) {
	f := &fleet{http: &http.Client{Timeout: 3 * time.Second}}
	for i := range nodeCount {
		n := &node{
			id: fmt.Sprintf("node-%d", i+1), dir: dir, program: o.Program, environ: nodeEnviron(o.Environ), events: events, state: nodeDown,
		}
		n.config = nodeConfig(n.id, s, d)
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

// nodeConfig is the configuration of one node.
func nodeConfig(id string, s *server, d *database) config.Config {
	every := "@every " + flushEvery.String()
	return config.Config{
		Node:      config.Node{ID: id},
		Redis:     s.config,
		Election:  config.Election{LockKey: s.lockKey(), TTL: ttl},
		Databases: map[string]config.Database{"main": {Driver: d.driver, DSNInline: d.dsn}},
		Jobs: []config.Job{{
			Name: "page-views", Schedule: every,
			Flush: config.Flush{
				From:    config.From{Type: spec.Counters, Key: s.viewsKey(fmt.Sprintf("[0-%d]", shards-1))},
				To:      config.To{Database: "main", Table: "articles", Key: []string{"id"}},
				Columns: map[string]config.Column{"id": {From: "$field"}, "views": {From: "$value", Op: "add"}},
			},
		}, {
			Name: "users", Schedule: every,
			Flush: config.Flush{
				From: config.From{Type: spec.Hashes, Key: s.userKey("<id>"), Changed: s.changedKey()},
				To:   config.To{Database: "main", Table: "users", Key: []string{"id"}},
			},
		}},
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

// find returns the node of that name, or nil.
func (f *fleet) find(id string) *node {
	for _, n := range f.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

// exits is how often a node has ended by itself, and one that has.
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

// backlog asks the nodes how many changes wait in Redis. Only an answer counts
// that was gathered after since.
func (f *fleet) backlog(ctx context.Context, since time.Time) (int64, error) {
	var problems []error
	for _, n := range f.nodes {
		total, err := f.ask(ctx, n, since)
		if err == nil {
			return total, nil
		}
		problems = append(problems, fmt.Errorf("%s: %w", n.id, err))
	}
	return 0, errors.Join(problems...)
}

func (f *fleet) ask(ctx context.Context, n *node, since time.Time) (int64, error) {
	_, _, url := n.view()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"api/v1/status", http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := f.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var s struct {
		Now   time.Time `json:"now"`
		Error string    `json:"error"`
		Jobs  []struct {
			Name    string `json:"name"`
			Backlog *int64 `json:"backlog"`
		} `json:"jobs"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return 0, fmt.Errorf("its status is %s: %w", resp.Status, err)
	}
	if s.Error != "" {
		return 0, errors.New(s.Error)
	}
	if !s.Now.After(since) {
		return 0, errors.New("its status is from before the end of the traffic")
	}
	var total int64
	for _, j := range s.Jobs {
		if j.Backlog == nil {
			return 0, fmt.Errorf("does not know the backlog of %s", j.Name)
		}
		total += *j.Backlog
	}
	return total, nil
}
