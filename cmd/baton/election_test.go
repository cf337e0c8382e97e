package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

// lease is a lease that a daemon can keep even if other programs need the processors. No test waits for its end.
const lease = "10s"

// buffer stores the output of a daemon in the background.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// daemon runs `baton run` in the background until the test ends, or until stop is called.
func (c *cli) daemon(args ...string) (log *buffer, stop func() int) {
	c.t.Helper()
	log = &buffer{}
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, cmdline.Env{
			Args: append([]string{"run"}, args...), Stdin: strings.NewReader(""), Stdout: log, Stderr: log,
			Getenv: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok },
			Exit:   func(code int) { c.t.Errorf("the daemon ended the process with %d", code) },
		})
	}()
	stop = sync.OnceValue(func() int { cancel(); return <-code })
	c.t.Cleanup(func() { stop() })
	return log, stop
}

// until runs a command repeatedly until its standard output contains text.
func (c *cli) until(text string, args ...string) result {
	c.t.Helper()
	var got result
	testsupport.AwaitNoError(c.t, fmt.Sprintf("baton %s to say %q", strings.Join(args, " "), text), func() error {
		if got = c.run(args...); strings.Contains(got.stdout, text) {
			return nil
		}
		return fmt.Errorf("it ends with %d\n%s%s", got.code, got.stdout, got.stderr)
	})
	return got
}

func TestTheElectionIsSeenAndHandedOverFromOutside(t *testing.T) {
	c := newCLI(t)
	c.env["BATON_REDIS"] = useRedis(t).URL()
	c.env["BATON_TTL"] = lease

	for _, command := range []string{"leader", "stepdown"} {
		if got := c.run(command); got.code != cmdline.ExitNoLeader || !strings.Contains(got.stderr, `nobody holds lock "baton"`) {
			t.Errorf("%s without a leader: %+v", command, got)
		}
	}
	for format, want := range map[string]string{"table": "", "json": "null\n", "yaml": "---\nnull\n"} {
		if got := c.run("leader", "-o", format); got.code != cmdline.ExitNoLeader || got.stdout != want || got.stderr == "" {
			t.Errorf("leader -o %s without a leader: %+v, want %q", format, got, want)
		}
	}
	if got := c.run("status"); got.code != cmdline.ExitOK || !strings.Contains(got.stdout, `Lock "baton": no node leads`) {
		t.Errorf("status without a leader: %+v", got)
	}

	log, stop := c.daemon("--node-id", "db1", "--http", "127.0.0.1:0")
	c.until("db1\n", "leader")
	c.daemon("--node-id", "db2", "--http", "off")
	c.until("db2", "status")

	status := c.run("status").stdout
	for _, want := range []string{`(?m)^Lock "baton": db1 leads, epoch \d+, for `, `lease (\d+ms|\d+(\.\d)?s) left`, `(?m)^db1 +leading `, `(?m)^db2 +standby `, `127\.0\.0\.1:\d+`} {
		if !regexp.MustCompile(want).MatchString(status) {
			t.Errorf("status lacks %s:\n%s", want, status)
		}
	}
	var snapshot struct {
		Leader struct {
			NodeID string `json:"node_id"`
			Epoch  int64  `json:"epoch"`
		} `json:"leader"`
	}
	if err := json.Unmarshal([]byte(c.run("status", "-o", "json").stdout), &snapshot); err != nil || snapshot.Leader.NodeID != "db1" {
		t.Errorf("status -o json: %+v, %v", snapshot, err)
	}

	if got := c.run("stepdown", "--to", "db9"); got.code != cmdline.ExitFailure || !strings.Contains(got.stderr, `node "db9" is not among the live nodes`) {
		t.Errorf("stepdown to nobody: %+v", got)
	}
	if got := c.run("stepdown", "--to", "db1"); got.code != cmdline.ExitFailure || !strings.Contains(got.stderr, "leads already") {
		t.Errorf("stepdown to the leader: %+v", got)
	}
	if got := c.run("stepdown", "--to", "db2", "--reason", "kernel upgrade"); got.code != cmdline.ExitOK || !strings.HasPrefix(got.stdout, "db2 leads after db1: epoch ") {
		t.Fatalf("stepdown: %+v", got)
	}
	if !strings.Contains(log.String(), "kernel upgrade") {
		t.Errorf("the old leader's log does not say why:\n%s", log)
	}
	if got := c.run("leader").stdout; got != "db2\n" {
		t.Errorf("leader after the step-down: %q", got)
	}
	if code := stop(); code != cmdline.ExitOK {
		t.Errorf("the daemon ended with %d:\n%s", code, log)
	}
	if got := c.run("status").stdout; strings.Contains(got, "db1") {
		t.Errorf("a node that has shut down is still listed:\n%s", got)
	}
}

func TestReleaseIsForWhoeverCannotAnyMore(t *testing.T) {
	c := newCLI(t)
	r := useRedis(t)
	c.env["BATON_REDIS"] = r.URL()
	r.Client(t).Do("SET", "baton", "0b9b3f6e-6f0a-4c43-8d5e-3c1f6b1d8a52")
	c.want(cmdline.ExitUsage, "", "baton: say either --crashed or --owner; see baton release --help\n", "release")
	c.want(cmdline.ExitFailure, "", "baton: nothing was released: lock \"baton\" is not held by owner somebody-else; 0b9b3f6e-6f0a-4c43-8d5e-3c1f6b1d8a52 holds it\n",
		"release", "--owner", "somebody-else")
	if got := c.run("leader").stdout; !strings.Contains(got, "not baton") {
		t.Errorf("the lock of another owner is gone: %q", got)
	}
	if got := c.run("release", "--crashed"); got.code != cmdline.ExitFailure || !strings.Contains(got.stderr, "ExecStopPost=") {
		t.Errorf("release --crashed outside a service: %+v", got)
	}
	c.want(cmdline.ExitOK, "released lock \"baton\"\n", "", "release", "--owner", "0b9b3f6e-6f0a-4c43-8d5e-3c1f6b1d8a52")
	if got := c.run("leader"); got.code != cmdline.ExitNoLeader {
		t.Errorf("the lock is still held: %+v", got)
	}
	if got := c.run("release", "--owner", "0b9b3f6e-6f0a-4c43-8d5e-3c1f6b1d8a52"); got.code != cmdline.ExitFailure || !strings.HasSuffix(got.stderr, "; nobody holds it\n") {
		t.Errorf("released twice: %+v", got)
	}
}

func TestAWatchShowsThatRedisIsAwayAndWaits(t *testing.T) {
	r := testsupport.StartRedis(t)
	r.Kill()
	ctx, cancel := context.WithCancel(t.Context())
	out := &buffer{}
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, cmdline.Env{Args: []string{"status", "--watch", "--interval", "100ms", "--redis", r.URL()}, Stdout: out, Stderr: out,
			Getenv: func(string) (string, bool) { return "", false }})
	}()
	await := func(text string) {
		t.Helper()
		testsupport.Await(t, text, func() bool { return strings.Contains(out.String(), text) }, out)
	}
	await("connect to redis")
	r.Restart()
	await("no node leads")
	cancel()
	if got := <-code; got != cmdline.ExitOK {
		t.Errorf("exit code %d", got)
	}
}

// TestEveryConfigurationInTheDocumentsIsValid loads the configurations that a new user copies.
func TestEveryConfigurationInTheDocumentsIsValid(t *testing.T) {
	texts := map[string][]byte{"README.md": nil, "docs/redis.md": nil}
	for name := range texts {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = text
	}
	c := newCLI(t) // uses another directory
	for name, text := range texts {
		blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
		if len(blocks) == 0 {
			t.Fatalf("%s shows no configuration", name)
		}
		for _, b := range blocks {
			c.file("shown.yaml", string(b[1]))
			if got := c.run("config", "show", "shown.yaml"); got.code != cmdline.ExitOK {
				t.Errorf("the configuration in %s: %+v\n%s", name, got, b[1])
			}
		}
	}
}
