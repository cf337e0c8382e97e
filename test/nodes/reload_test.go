package nodes

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// A file that would take all memory to be parsed costs a leader nothing: it keeps the configuration that it has.
func TestALeaderOutlivesAReloadOfANestedFile(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 1, TTL: untilReleased, RedisURL: testsupport.StartRedis(t).URL()})
	n := c.AwaitLeader(soon)
	good, err := os.ReadFile(n.ConfigPath())
	if err != nil {
		t.Fatal(err)
	}
	const refused = "the configuration was not reloaded: the old one stays in force"
	for i, nested := range []string{strings.Repeat("[", 60_000), strings.Repeat("{a: ", 15_000), "\n" + strings.Repeat("- ", 30_000)} {
		write(t, n.ConfigPath(), string(good)+"\nlog: "+nested+"\n")
		n.Signal(syscall.SIGHUP)
		c.Await(soon, "the reload to be refused", func() bool { return len(n.Lines(refused)) > i || !n.Running() })
		if code, ended := n.Exited(); ended {
			t.Fatalf("the reload ended the node with code %d", code)
		}
		says(t, "log", n.Lines(refused)[i].Text("error"), []string{n.ConfigPath() + ":", "nested deeper than 32 levels"})
	}
	if peak := n.Peak(); peak > lieMemory {
		t.Errorf("the reloads took %d MiB", peak>>20)
	}
	if len(n.Lines(refused)) != 3 || !n.Leading() {
		t.Error("the node does not lead any more")
	}
}
