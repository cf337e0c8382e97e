package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/testsupport"
)

// evil is a text that clears the screen, sets the title of the window, hides the following text, writes backwards and begins a new line.
const evil = "ev\x1b[2J\x1b]0;x\a\x1b[8m\u009b31m\u202e\x7f\xff\v\r\nFORGED\tx"

// forgery returns the part of a text that has an effect on a terminal, except for baton's own colours.
func forgery(text string) string {
	text = regexp.MustCompile("\x1b\\[(0|1|2|31|32|33)m").ReplaceAllString(text, "")
	for i, r := range text {
		if r != '\n' && !unicode.IsGraphic(r) || r == unicode.ReplacementChar && text[i] != "\uFFFD"[0] {
			return fmt.Sprintf("%q", text[max(0, i-40):min(len(text), i+10)])
		}
	}
	return regexp.MustCompile(`(?m)^FORGED.*`).FindString(text)
}

// TestNothingThatIsShownCommandsATerminal checks that a client that can write to Redis, or to a flushed table, cannot send control codes to
// the terminal of a user.
func TestNothingThatIsShownCommandsATerminal(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	c, server, db := newCLI(t), useRedis(t), testsupport.SQLite(t)
	db.Exec(t, "CREATE TABLE articles (id INTEGER PRIMARY KEY, views INTEGER NOT NULL)")
	c.file("baton.yaml", fmt.Sprintf(`
redis: {url: %q}
election: {ttl: 10s}
http: {listen: "off"}
databases: {main: {driver: sqlite, dsn: %q}}
jobs:
  - name: views
    schedule: "@yearly"
    flush: {from: {type: counters, key: views}, to: {database: main, table: articles, key: [id]}, columns: {id: $field, views: $value}}
  - {name: report, schedule: "@yearly", shell: true, command: 'printf "\033[31mred\033[0m\033[2J\r\n\tdone"; exit 3'}
`, server.URL(), db.DSN))
	c.env["BATON_CONFIG"] = "baton.yaml"
	conn := server.Conn()
	do := func(args ...any) {
		t.Helper()
		if _, err := conn.Do(args[0].(string), args[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	_, stop := c.daemon("--node-id", "db1")
	c.until("db1\n", "leader")
	do("HSET", "views", evil, 1)
	for _, job := range []string{"views", "report"} {
		c.run("job", "run", job, "--watch", "--reason", evil)
		c.run("job", "pause", job, "--reason", evil)
	}
	c.run("job", "cancel", "report", "--reason", evil)
	c.run("pause", "--reason", evil)
	stop()
	id := first(t, `(?m)^([0-9a-f]{12})  `, c.run("dead", "list").stdout)

	node, err := json.Marshal(map[string]any{"version": evil, "config_hash": evil, "address": evil, "instance": evil, "twin": evil, "state": evil, "seen_ms": time.Now().UnixMilli(), "clock_ms": 900})
	if err != nil {
		t.Fatal(err)
	}
	do("HSET", "{baton}:nodes", evil, string(node))
	do("HSET", "{baton}:nodes", "db9", string(node))
	do("HSET", "{baton}:control", "aside:db9", evil)
	do("XADD", "{baton}:events", "*", "event", evil, "node_id", evil, "epoch", 7, "reason", evil)
	do("HSET", "{baton}:job:report", "result_error", evil, "result_by", evil, "result_node", evil, "result_state", evil, "result_id", evil, "result_trigger", evil, "consecutive_failures", 3)
	do("XADD", "{baton}:job:report:runs", "*", "id", evil, "state", evil, "slot", 1, "trigger", evil, "attempt", 1, "by", evil, "forced", 0, "node", evil, "owner", evil, "epoch", 1, "started", 1, "finished", 2, "rows", 0, "dead", 0, "exit_code", "", "error", evil, "output", evil)
	do("XADD", "{baton}:job:report:runs", "*", "id", "", "state", "missed", "slot", 1, "reason", evil, "count", 2, "first", 1, "node", evil, "owner", evil, "epoch", 1, "error", evil)

	look := func(commands ...string) {
		t.Helper()
		for _, args := range commands {
			got := c.run(append(strings.Fields(args), "--color", "always")...)
			if bad := forgery(got.stdout + got.stderr); bad != "" {
				t.Errorf("baton %s lets through %s", args, bad)
			}
		}
	}
	look("status", "status --events", "leader", "explain", "explain db9", "job list", "job show report", "job show views", "job history report", "job history views", "job preview views",
		"dead list", "dead list --count", "dead show "+id, "dead replay "+id, "job run report", "job pause report --reason again", "job resume report", "stepdown", "resume --wait 100ms")
	if got := c.run("status"); !strings.Contains(got.stdout, `ev\x1b[2J`) || !strings.Contains(got.stdout, "FORGED x") {
		t.Errorf("nothing of it is shown:\n%s", got.stdout)
	}
	c.matches(c.run("status", "-o", "json"), cmdline.ExitOK, `ev\\u001b\[2J`, unhurried) // programs get the text unchanged
	do("DEL", "{baton}:control")
	for key, value := range map[string]string{"baton": evil, "nightly": evil} {
		do("SET", key, value, "PX", 60000)
		do("HSET", "{"+key+"}:term", "owner", value, "node_id", evil, "epoch", 9, "since", 1, "ttl_ms", 60000)
	}
	look("status", "leader", "explain db9", "lock --list", "stepdown --wait 100ms", "pause --wait 100ms", "lock --break nightly")
	if got := c.run("no-"+evil, "--x"); forgery(strings.ReplaceAll(got.stderr, "\t", " ")) != "" {
		t.Errorf("an error about arguments: %q", got.stderr)
	}
}

// TestPeopleAreToldBySayAlone checks that all text for people is written by show.Say, because otherwise the author of a new line could
// forget it.
func TestPeopleAreToldBySayAlone(t *testing.T) {
	var files []string
	for _, rooms := range []string{"*.go", "internal/*/*.go"} {
		some, err := filepath.Glob(rooms)
		if err != nil || len(some) == 0 {
			t.Fatal(rooms, some, err)
		}
		files = append(files, some...)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "internal/show/text.go" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			if regexp.MustCompile(`fmt\.Fprint(f|ln)?\([^&]`).MatchString(line) {
				t.Errorf("%s:%d: %s", name, n+1, strings.TrimSpace(line))
			}
		}
	}
}
