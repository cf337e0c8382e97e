package main

import (
	"strings"
	"testing"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/testsupport"
)

// TestAnElectionIsDirectedWithoutTheSourcesOfItsJobs checks that commands for elections do not open the sources of jobs, because a source
// that cannot be opened must not prevent a handover.
func TestAnElectionIsDirectedWithoutTheSourcesOfItsJobs(t *testing.T) {
	c := newCLI(t)
	cluster := "redis:\n  cluster: [\"" + strings.Join(testsupport.StartCluster(t).Addresses(), `", "`) + "\"]\nelection: {ttl: " + lease + "}\n"
	c.file("node.yaml", "node: {candidate: true}\n"+cluster)
	// In a Cluster the counters would have to be in the same slot as their index.
	c.file("jobs.yaml", cluster+`databases: {main: {driver: sqlite, dsn: "file:main.db"}}
jobs:
  - name: views
    schedule: "@every 1h"
    flush:
      from: {type: counters, key: "views:<id>", changed: viewed}
      to: {database: main, table: views, key: [id]}
      columns: {id: {from: $id}, n: {from: $value, op: add}}
`)
	if got := c.run("job", "list", "--config", "jobs.yaml"); got.code != cmdline.ExitUsage || !strings.Contains(got.stderr, "in one slot with their index") {
		t.Fatalf("the source can be opened, so this test shows nothing: %+v", got)
	}
	c.daemon("--config", "node.yaml", "--node-id", "db1", "--http", "off")
	c.until("db1\n", "leader", "--config", "node.yaml")
	c.want(cmdline.ExitOK, "db1\n", "", "leader", "--config", "jobs.yaml")
	for _, order := range [][]string{{"stepdown", "--no-wait"}, {"pause", "--wait", "1m"}, {"resume", "--wait", "1m"}} {
		if got := c.run(append(order, "--config", "jobs.yaml")...); got.code != cmdline.ExitOK {
			t.Errorf("baton %s: %+v", strings.Join(order, " "), got)
		}
	}
}
