package main

import (
	"net"
	"strings"
	"testing"

	"baton/cmd/baton/internal/cmdline"
)

// completes fails the test unless completion offers exactly these words and prints nothing else.
func (c *cli) completes(want string, args ...string) {
	c.t.Helper()
	got := c.run(append([]string{"__completeNoDesc"}, args...)...)
	words, _, _ := strings.Cut(got.stdout, ":")
	if words = strings.Join(strings.Fields(words), " "); words != want || got.code != cmdline.ExitOK {
		c.t.Errorf("baton %q: offers %q, want %q: %+v", args, words, want, got)
	}
}

func TestNamesAreCompleted(t *testing.T) {
	c, bare, _ := nodeCLI(t)
	id := first(t, `(?m)^([0-9a-f]{12})  `, c.run("dead", "list").stdout)
	run := first(t, `"run_id": "([^"]+)"`, c.run("job", "history", "report", "-o", "json").stdout)
	for _, c := range []*cli{c, {t, bare}} { // through the servers, and through a node
		c.completes("views report apart", "job", "show", "")
		c.completes("report", "job", "run", "r")
		c.completes("", "job", "run", "report", "")
		c.completes("db1", "stepdown", "--to", "")
		c.completes("db1", "explain", "")
		c.completes(run, "job", "logs", "report", "--run", "")
		c.completes("", "job", "cancel", "report", "--run", "")
		c.completes(id, "dead", "show", "")
		c.completes("", "dead", "drop", id, "")
	}
	c.completes("main", "dead", "list", "--database", "")
	c.completes("baton other", "status", "--lock-key", "")
	c.completes("table json yaml", "status", "-o", "")
	c.completes("auto always never", "status", "--color", "")
	c.completes("history", "job", "hi")
	c.completes("", "lock", "")
}

func TestCompletionIsQuickAndSilentWhateverIsWrong(t *testing.T) {
	c := newCLI(t)
	c.env["BATON_CONFIG"] = "nowhere.yaml"
	c.completes("", "job", "run", "")
	c.completes("", "dead", "show", "")
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, but never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c.env = map[string]string{"BATON_REDIS": "redis://" + silent.Addr().String()}
	c.completes("", "stepdown", "--to", "")
	c.completes("", "lock", "--break", "")
}
