package cluster

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/testsupport/ranout"
)

const (
	startWithin  = time.Minute      // a long time, because two cores may run all tests at once
	answerWithin = 20 * time.Second // a frozen node is not asked
	pollEvery    = 5 * time.Millisecond
)

// Cluster contains the nodes of one election.
type Cluster struct {
	Nodes []*Node

	t      testing.TB
	opts   Options
	client *http.Client
}

func newCluster(t testing.TB, o Options) *Cluster {
	return &Cluster{t: t, opts: o, client: &http.Client{
		Timeout: answerWithin,
		// A frozen node keeps its connections open, so no connection is used twice.
		Transport: &http.Transport{DisableKeepAlives: true},
	}}
}

// Start starts the nodes and returns when each node runs its election loop. At the test's end the nodes are killed. If the test has failed,
// the logs of the nodes are shown.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	o.setDefaults()
	c := newCluster(t, o)
	program := o.Program
	if program == "" {
		program = Build(t)
	}
	dir := shortDir(t)
	for i := range o.Nodes {
		id := fmt.Sprintf("n%d", i+1)
		n := &Node{
			ID: id, c: c, t: t, program: program, dir: dir,
			config: filepath.Join(dir, id+".yaml"), log: filepath.Join(dir, id+".log"), env: environment(append(slices.Clone(o.Env), o.EnvOf(i)...)),
		}
		if err := os.WriteFile(n.config, []byte(o.yaml(i)), 0o600); err != nil {
			t.Fatal(err)
		}
		if o.RuntimeDir {
			n.runtimeDir = filepath.Join(dir, id)
			if err := os.Mkdir(n.runtimeDir, 0o700); err != nil {
				t.Fatal(err)
			}
			n.env = append(n.env, "RUNTIME_DIRECTORY="+n.runtimeDir)
		}
		c.Nodes = append(c.Nodes, n)
	}
	t.Cleanup(c.end)
	for _, n := range c.Nodes {
		n.launch()
	}
	for _, n := range c.Nodes {
		n.awaitStarted()
	}
	return c
}

// shortDir makes a directory for the test. Its path is short enough for a node's socket, unlike the path of t.TempDir, which contains the
// whole name of the test.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nodes") //nolint:usetesting // t.TempDir is what is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// StartNode starts one node with the test's own configuration file, in the directory of that file. It returns when the node runs its
// election loop. At the test's end a node that still runs is stopped, and must end in order. If the test has failed, the node's log is
// shown.
func StartNode(t testing.TB, config string, env []string, args ...string) *Node {
	t.Helper()
	id := strings.TrimSuffix(filepath.Base(config), ".yaml")
	c := newCluster(t, Options{})
	n := &Node{
		ID: id, c: c, t: t, program: Build(t), dir: filepath.Dir(config), args: args,
		config: config, log: filepath.Join(t.TempDir(), id+".log"), env: environment(env),
	}
	c.Nodes = []*Node{n}
	t.Cleanup(c.end)
	t.Cleanup(func() {
		if !n.Running() || n.ordered {
			return
		}
		if code := n.Terminate(startWithin); code != 0 {
			t.Errorf("%s was told to end and did with code %d", id, code)
		}
	})
	n.launch()
	n.awaitStarted()
	return n
}

// end kills the nodes, and reports the nodes that had ended by themselves.
func (c *Cluster) end() {
	for _, n := range c.Nodes {
		if n.proc == nil {
			continue
		}
		if n.proc.Exited() && !n.ordered && !c.opts.MayExit {
			c.t.Errorf("node %s ended by itself with code %d", n.ID, n.proc.Code())
		}
		n.Kill()
	}
	if !c.t.Failed() {
		return
	}
	for _, n := range c.Nodes { // not by t.Logf, because test/suite reads lines of t.Logf as assertions
		fmt.Fprintf(c.t.Output(), "log of node %s:\n%s\n", n.ID, tail(n.Log(), 6000))
	}
}

// Leader returns the node that reports that it leads, or nil. If two nodes report that, the test fails.
func (c *Cluster) Leader() *Node {
	c.t.Helper()
	var leader *Node
	for _, n := range c.Nodes {
		if !n.Leading() {
			continue
		}
		// The first leader is asked again, because it may have stepped down between the two questions.
		if leader != nil && leader.Leading() {
			c.t.Fatalf("%s and %s both say that they lead", leader.ID, n.ID)
		}
		leader = n
	}
	return leader
}

// AwaitLeader waits until a node leads.
func (c *Cluster) AwaitLeader(timeout time.Duration) *Node {
	c.t.Helper()
	return c.AwaitOther(nil, timeout)
}

// AwaitOther waits until a node other than the node old leads.
func (c *Cluster) AwaitOther(old *Node, timeout time.Duration) *Node {
	c.t.Helper()
	var leader *Node
	c.Await(timeout, "one node to lead", func() bool {
		leader = c.Leader()
		return leader != nil && leader != old
	})
	return leader
}

// Await waits until the function reached returns true. A test that fails at the time limit runs again (see package ranout).
func (c *Cluster) Await(timeout time.Duration, what string, reached func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(timeout); !reached(); time.Sleep(pollEvery) {
		if time.Now().After(deadline) {
			ranout.Fatal(c.t, what, fmt.Sprintf("waited %v in vain for %s", timeout, what))
		}
	}
}

// Standbys returns the running nodes other than the leader.
func (c *Cluster) Standbys() []*Node {
	c.t.Helper()
	var standbys []*Node
	leader := c.Leader()
	for _, n := range c.Nodes {
		if n != leader && n.Running() {
			standbys = append(standbys, n)
		}
	}
	return standbys
}

// Command runs a command of baton with the configuration of this cluster's first node.
func (c *Cluster) Command(args ...string) Result {
	c.t.Helper()
	return Command(c.t, startWithin, nil, append(args, "--config", c.Nodes[0].config)...)
}

// tail returns the end of a log, short enough for a failure message.
func tail(log string, most int) string {
	if len(log) > most {
		return "..." + log[len(log)-most:]
	}
	return log
}
