package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"golang.org/x/sys/unix"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/testsupport"
)

// nodeCLI returns a cli with a node that leads. The node has a status page, an admin socket, a flush with a dead letter, and a command job.
// bare is the environment of a shell on another host without a configuration.
func nodeCLI(t *testing.T) (c *cli, bare map[string]string, socket string) {
	t.Helper()
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	c, server, db := newCLI(t), useRedis(t), testsupport.SQLite(t)
	db.Exec(t, "CREATE TABLE articles (id INTEGER PRIMARY KEY, views INTEGER NOT NULL)")
	c.file("token", "correct-horse-battery-staple-12345-and-more\n")
	dir, err := os.MkdirTemp("", "run") //nolint:usetesting // the path of a socket must be short, and t.TempDir has the test's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "admin.sock")
	token, err := filepath.Abs("token")
	if err != nil {
		t.Fatal(err)
	}
	c.file("baton.yaml", fmt.Sprintf(`
redis: {url: %q}
election: {ttl: 10s}
http: {listen: "127.0.0.1:0", token_file: %q}
databases: {main: {driver: sqlite, dsn: %q}}
jobs:
  - name: views
    schedule: "@yearly"
    flush:
      from: {type: counters, key: views}
      to: {database: main, table: articles, key: [id]}
      columns: {id: $field, views: $value}
  - {name: report, schedule: "@yearly", command: [/bin/echo, hello]}
  - {name: apart, schedule: "@yearly", command: [/bin/true], lock: other}
`, server.URL(), token, db.DSN))
	c.env["BATON_CONFIG"], c.env["RUNTIME_DIRECTORY"] = "baton.yaml", filepath.Dir(socket)
	c.daemon("--node-id", "db1")
	c.until("db1\n", "leader")
	conn := server.Conn()
	if _, err := conn.Do("HSET", "views", "1", 7, "front page", 1); err != nil {
		t.Fatal(err)
	}
	c.run("job", "run", "views", "--watch")
	c.run("job", "run", "report", "--watch")
	c.until("front page", "dead", "list")
	return c, map[string]string{"BATON_SERVER": "unix://" + socket}, socket
}

// passing matches the values that differ between two calls, or between a direct call and a call through a node, because the answering node
// has just reported itself.
var passing = regexp.MustCompile(`within 35s|\bnow\b|\b(\d+(\.\d+)?(ms|s|m|h|d))+\b( ago)?|\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)|"(lease_left_seconds|last_seen_seconds_ago|age_seconds|lag_seconds|took_seconds|clock_offset_seconds)": -?[\d.e-]+|"since": "[^"]*"`)

func TestCommandsSayTheSameThroughANode(t *testing.T) {
	c, bare, _ := nodeCLI(t)
	id := first(t, `(?m)^([0-9a-f]{12})  `, c.run("dead", "list").stdout)
	run := first(t, `"run_id": "([^"]+)"`, c.run("job", "history", "report", "-o", "json").stdout)
	through := &cli{t, bare}
	c.run("job", "run", "report", "--watch") // another run is the last one
	bury(t, c, "report")
	c.want(cmdline.ExitOK, "hello\n", "", "job", "logs", "report", "--run", run) // the other runs print the same
	for _, args := range [][]string{
		{"leader"}, {"leader", "-o", "json"}, {"status"}, {"status", "--events"}, {"explain", "db1"}, {"explain", "db9"},
		{"job", "list"}, {"job", "list", "-o", "json"}, {"job", "show", "views"}, {"job", "show", "nope"}, {"job", "next", "views"}, {"job", "next", "nope"}, {"job", "history", "nope"}, {"job", "logs", "nope"}, {"job", "logs", "views"}, {"job", "pause", "nope"}, {"job", "cancel", "report", "--run", "x"},
		{"job", "history", "views"}, {"job", "history", "report", "-o", "json"}, {"job", "logs", "report"}, {"job", "logs", "report", "--run", run}, {"job", "logs", "report", "--run", "x"},
		{"dead", "list"}, {"dead", "list", "-o", "json"}, {"dead", "list", "--count"}, {"dead", "show", id}, {"dead", "show", "ffff"},
		{"job", "pause", "views", "--reason", "test"}, {"job", "list"}, {"job", "run", "views"}, {"job", "resume", "views"},
		{"job", "pause", "--all"}, {"job", "resume", "--all"}, {"job", "cancel", "report"}, {"job", "cancel", "nope"}, {"job", "run", "nope"},
		{"dead", "replay", id}, {"stepdown", "--to", "db9"}, {"reload"},
	} {
		before := func() {}
		if args[0] == "job" && (args[1] == "pause" || args[1] == "resume") { // so that both calls find the same state
			before = func() {
				c.run("job", "resume", args[2])
				if args[1] == "resume" {
					c.run("job", "pause", args[2], "--reason", "test")
				}
			}
		}
		before()
		direct := c.run(args...)
		before()
		asked := through.run(args...)
		same := func() bool {
			return direct.code == asked.code && even(direct.stdout) == even(asked.stdout) && even(direct.stderr) == even(asked.stderr)
		}
		looks := args[0] != "job" || args[1] == "list" || args[1] == "show"
		for deadline := time.Now().Add(time.Minute); looks && !same() && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			asked = through.run(args...) // a node learns of an order that was given elsewhere with a short delay
		}
		if !same() {
			t.Errorf("baton %s\nitself: %+v\nthrough a node: %+v", strings.Join(args, " "), direct, asked)
		}
	}
}

// bury adds so many runs to a job's history that the earlier runs are no longer among the latest runs.
func bury(t *testing.T, c *cli, name string) {
	t.Helper()
	var shown struct{ Redis struct{ URL string } }
	if err := json.Unmarshal([]byte(c.run("config", "show", "-o", "json").stdout), &shown); err != nil {
		t.Fatal(err)
	}
	conn, err := redis.DialURL(shown.Redis.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Do("EVAL", `for i = 1, 650 do redis.call('XADD', KEYS[1], '*', 'id', 'r' .. i, 'state', 'succeeded') end`, 1, "{baton}:job:"+name+":runs"); err != nil {
		t.Fatal(err)
	}
}

// even removes the values that match passing, and their width.
func even(text string) string {
	return regexp.MustCompile(` {2,}`).ReplaceAllString(passing.ReplaceAllString(text, "…"), "  ")
}

func TestOrdersAreGivenThroughANode(t *testing.T) {
	c, bare, socket := nodeCLI(t)
	through := &cli{t, bare}
	c.matches(through.run("job", "run", "report", "--watch"), cmdline.ExitOK, `(?s)succeeded: exit code 0 in \S+\n$`, `^$`)
	c.matches(through.run("job", "run", "report", "-o", "yaml"), cmdline.ExitOK, `(?m)^  run_id: \S+$`, `^$`)
	c.matches(through.run("pause", "--reason", "upgrade"), cmdline.ExitOK, `paused by \S+: upgrade`, `^$`)
	c.matches(through.run("leader"), cmdline.ExitNoLeader, `^$`, `paused by`) // immediately
	c.matches(through.run("resume"), cmdline.ExitOK, `db1 leads`, `^$`)
	c.matches(through.run("dead", "drop", "--job", "views", "--all", "--yes"), cmdline.ExitOK, `1 dead letter dropped`, `^$`)
	c.matches(through.run("reload"), cmdline.ExitOK, `^reloaded\n$`, `^$`)
	c.matches(through.run("stepdown", "--all-locks", "--wait", "20s"), cmdline.ExitOK, `^baton: db1 leads after db1: epoch \d+, .*\nother: db1 leads after db1: epoch \d+, `, `^$`)
	c.matches(c.run("status", "--events", "--lock-key", "other"), cmdline.ExitOK, `stepped_down`, unhurried)
	c.matches(through.run("stepdown", "--all-locks", "--no-wait", "-o", "json"), cmdline.ExitOK, `(?s)"lock": "baton",.*"lock": "other",.*"from": "db1"`, `^$`)
	through.until("db1\n", "leader")

	var s struct{ Nodes []struct{ Address string } }
	if err := json.Unmarshal([]byte(c.run("status", "-o", "json").stdout), &s); err != nil {
		t.Fatal(err)
	}
	page := []string{"--server", "http://" + s.Nodes[0].Address}
	stranger := &cli{t, map[string]string{}}
	c.matches(stranger.run(append([]string{"leader"}, page...)...), cmdline.ExitOK, `^db1\n$`, `^$`)
	c.matches(stranger.run(append([]string{"job", "pause", "views"}, page...)...), cmdline.ExitFailure, `^$`, `requires its token: write --token-file`)
	page = append(page, "--token-file", "token")
	c.matches(stranger.run(append([]string{"job", "pause", "views"}, page...)...), cmdline.ExitOK, `is paused by`, `^$`)
	c.matches(stranger.run("leader", "--server", "db1:9747"), cmdline.ExitUsage, `^$`, `server "db1:9747": write`)
	c.matches(stranger.run("leader", "--server", "unix:///nowhere/admin.sock"), cmdline.ExitFailure, `^$`, `no program listens on unix:///nowhere/admin.sock`)
	c.matches(stranger.run("leader", "--server", "unix://"+socket, "--lock-key", "x"), cmdline.ExitUsage, `^$`, `--server and --lock-key: give one|--lock-key and --server: give one`)
}

func TestWhoMayNotReadTheConfigurationAsksTheDaemonOfTheHost(t *testing.T) {
	c, _, socket := nodeCLI(t)
	for name, mode := range map[string]os.FileMode{"baton.yaml": 0, filepath.Dir(socket): 0o755, socket: 0o666, "..": 0o755} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	asNobody(t)
	c.matches(c.run("leader"), cmdline.ExitOK, `^db1\n$`, `^baton: asking the daemon of this host at `+regexp.QuoteMeta(socket)+`, because open baton.yaml: permission denied\n$`)
	c.env["RUNTIME_DIRECTORY"] = "/nowhere"
	c.matches(c.run("leader"), cmdline.ExitUsage, `^$`, `permission denied.*\nor ask a node: --server https://host:port, or as a member of its group --server unix:///nowhere/admin.sock \(file does not exist\)`)
	c.matches(c.run("leader", "--config", "baton.yaml"), cmdline.ExitUsage, `^$`, `the daemon of this host was not asked, because --config is given`)
}

func TestWithAConfigurationThatIsWrongTheDaemonOfTheHostIsNamed(t *testing.T) {
	c, _, socket := nodeCLI(t)
	if err := os.WriteFile("baton.yaml", []byte("elektion: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.matches(c.run("leader"), cmdline.ExitUsage, `^$`, `baton.yaml:1:1: elektion: unknown key.*\nthe daemon of this host is running; to ask it, add --server unix://`+regexp.QuoteMeta(socket)+`\n$`)
	c.matches(c.run("leader", "--server", "unix://"+socket), cmdline.ExitOK, `^db1\n$`, `^$`)
	c.env["RUNTIME_DIRECTORY"] = "/nowhere"
	c.matches(c.run("leader"), cmdline.ExitUsage, `^$`, `unknown key[^\n]*\n$`)
}

// asNobody makes the test access files as the user nobody, because root can read all files. The user is a property of the thread.
func asNobody(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	const nobody = 65534
	runtime.LockOSThread()
	if _, err := unix.SetfsuidRetUid(nobody); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := unix.SetfsuidRetUid(0); err != nil {
			t.Error(err)
		}
		runtime.UnlockOSThread()
	})
}
