package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// Whatever commands do, each run ends with a clear reason, and the daemon goes on.
func TestDaemonOutlivesItsCommands(t *testing.T) {
	t.Parallel()
	server, dir, program := testsupport.StartRedis(t), t.TempDir(), cluster.Build(t)
	broken, noShebang := filepath.Join(dir, "broken.env"), filepath.Join(dir, "noshebang")
	for name, text := range map[string]string{broken: "A=1\nnonsense\n", noShebang: "exit 9\n"} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct{ yaml, state, err, output string }{
		"missing":    {`command: [/no/such/program, --x]`, "failed", "command not found: /no/such/program: is it installed on this host (n1)?", ""},
		"code":       {`{shell: true, command: "echo to out; echo to err >&2; exit 3"}`, "failed", "exit code 3", "to out\nto err\n"},
		"signal":     {`{shell: true, command: "kill -SEGV $$"}`, "failed", "ended by signal 11 (segmentation fault)", ""},
		"nodir":      {`{command: [/bin/true], working_dir: /no/such/dir}`, "failed", "working directory /no/such/dir is gone: no such file or directory", ""},
		"noenv":      {fmt.Sprintf(`{command: [/bin/true], env_file: %q}`, broken), "failed", "env_file " + broken + ", line 2: write NAME=VALUE", ""},
		"nosecret":   {`{command: [/bin/true], secrets: {TOKEN: /no/such/secret}}`, "failed", "secret TOKEN: stat /no/such/secret: no such file or directory", ""},
		"noshebang":  {fmt.Sprintf(`command: [%q]`, noShebang), "failed", "exit code 9", ""},
		"nowarden":   {`{shell: true, command: "sleep 0.2; kill -9 $PPID; sleep 100"}`, "failed", "the warden process was killed, and the command with it", ""},
		"slow":       {`{shell: true, command: "trap '' TERM; sleep 100; sleep 100", timeout: 10s, grace: 200ms}`, "timed_out", "timed out after 10s: SIGTERM did not end the command, so it was killed", ""},
		"background": {`{shell: true, command: "sleep 100 & echo done"}`, "succeeded", "", "done\nbaton: 1 process that the command had left behind was ended\n"},
		"flood":      {`{shell: true, command: "head -c 300000000 /dev/zero; exit 4"}`, "failed", "exit code 4", "\x00"},
		// A lock that the daemon holds is the command's, too.
		"nested": {fmt.Sprintf(`command: [%q, lock, --redis, %q, --no-wait, -v, %s, --, echo, inner]`, program, server.URL(), lockKey), "succeeded", "", "inner\n"},
	}
	var yaml strings.Builder
	for name, c := range cases {
		if strings.HasPrefix(c.yaml, "{") {
			fmt.Fprintf(&yaml, "- {name: %s, schedule: \"@every 1s\", %s}\n", name, c.yaml[1:len(c.yaml)-1])
		} else {
			fmt.Fprintf(&yaml, "- {name: %s, schedule: \"@every 1s\", %s}\n", name, c.yaml)
		}
	}
	c := cluster.Start(t, cluster.Options{Nodes: 1, TTL: untilLost, LockKey: lockKey, RedisURL: server.URL(), JobsYAML: yaml.String()})
	leader, conn := c.AwaitLeader(soon), server.Conn()
	for name, want := range cases {
		var got map[string]string
		c.Await(3*soon, "a run of "+name, func() bool {
			entries, err := redis.Values(conn.Do("XREVRANGE", fmt.Sprintf("{%s}:job:%s:runs", lockKey, name), "+", "-"))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if got, err = redis.StringMap(e.([]any)[1], nil); err != nil {
					t.Fatal(err)
				}
				if got["state"] != "" && got["state"] != "missed" && got["finished"] != "" {
					return true
				}
			}
			return false
		})
		if got["state"] != want.state || !strings.Contains(got["error"], want.err) || want.err == "" && got["error"] != "" {
			t.Errorf("%s: %s, %q; want %s, %q", name, got["state"], got["error"], want.state, want.err)
		}
		if !strings.HasSuffix(got["output"], want.output) {
			t.Errorf("%s: it printed %q, want %q", name, got["output"], want.output)
		}
	}
	if !leader.Leading() {
		t.Error("the daemon does not lead any more")
	}
	if most := peak(t, leader.Pid()); most > 120<<20 {
		t.Errorf("the daemon took up to %d MiB", most>>20)
	}
}

// peak is the most memory that a process has had in RAM, in bytes.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
