package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/diagnose"
)

// unhurried matches what a command prints to standard error on a busy machine: that a server has not answered yet.
const unhurried = `^(.* has not answered yet.*\n)*$`

// TestAListOfNodesThatIsCutIsTold checks that an incomplete list of nodes is shown as incomplete, and that no command reports an unread
// node as absent.
func TestAListOfNodesThatIsCutIsTold(t *testing.T) {
	c, server := newCLI(t), useRedis(t)
	c.env["BATON_REDIS"] = server.URL()
	args := []any{"{baton}:nodes"}
	for n := range 20_000 {
		args = append(args, fmt.Sprintf("n%05d", n), fmt.Sprintf(`{"state":"standby","version":"of more than sixty-four bytes, as each node has","seen_ms":%d}`, time.Now().UnixMilli()))
	}
	server.Client(t).Do("HSET", args...)

	var s struct {
		NodesRead int               `json:"nodes_read"`
		Nodes     []json.RawMessage `json:"nodes"`
		Problems  []diagnose.Problem
	}
	if err := json.Unmarshal([]byte(c.run("status", "-o", "json").stdout), &s); err != nil {
		t.Fatal(err)
	}
	told := false
	for _, p := range s.Problems {
		told = told || p.Code == diagnose.CodeNodesCut && p.Count == int64(s.NodesRead)
	}
	if s.NodesRead < 5_000 || s.NodesRead > 15_000 || len(s.Nodes) != 1000 || !told {
		t.Errorf("%d were read, %d are shown, problems %+v", s.NodesRead, len(s.Nodes), s.Problems)
	}
	c.matches(c.run("status"), cmdline.ExitOK,
		`the list of nodes is too long: 1\d,\d{3} entries were read, and 1,000 shown; there may be more nodes  → baton doctor`, unhurried)
	if got := c.run("explain", "db9"); !strings.Contains(got.stdout, `node "db9" is not among the 10`) || strings.Contains(got.stdout, "has registered") {
		t.Errorf("explain: %+v", got)
	}
}

func TestALeaderIsShownAmongMoreNodesThanFit(t *testing.T) {
	c, server := newCLI(t), useRedis(t)
	c.env["BATON_REDIS"], c.env["BATON_TTL"] = server.URL(), lease
	args := []any{"{baton}:nodes"}
	for n := range 3_000 {
		args = append(args, fmt.Sprintf("a%05d", n), fmt.Sprintf(`{"state":"standby","seen_ms":%d}`, time.Now().UnixMilli()))
	}
	server.Client(t).Do("HSET", args...)
	c.daemon("--node-id", "zz", "--http", "off")
	c.until("zz\n", "leader")
	c.matches(c.run("status"), cmdline.ExitOK, `(?s)3,001 entries were read, and 1,000 shown; .*\nzz +leading `, unhurried)
}
