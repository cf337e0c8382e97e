package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/testsupport"
)

func TestLogsOfAJobCanBeReadAndFollowed(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise a warden under the race detector would run for one more second
	c, server := newCLI(t), useRedis(t)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	c.file("token", "hush-hush\n")
	c.file("baton.yaml", fmt.Sprintf(`
redis: {url: %[1]q}
election: {ttl: 10s}
http: {listen: "off"}
defaults: {grace: 1s}
jobs:
  - name: report
    schedule: "@yearly"
    shell: true
    command: 'echo line 1; echo line 2; until test -e %[3]s/go-on; do sleep 0.05; done; for i in 3 4 5; do echo line $i; done; echo "$TOKEN"; exit 3'
    secrets: {TOKEN: %[2]q}
  - {name: quiet, schedule: "@yearly", command: [/bin/true]}
  - {name: flood, schedule: "@yearly", shell: true, command: 'head -c 1000000 /dev/zero | tr "\0" x; echo end'}
`, server.URL(), filepath.Join(dir, "token"), dir))
	c.env["BATON_CONFIG"] = "baton.yaml"
	c.matches(c.run("job", "logs", "report"), cmdline.ExitFailure, `^$`, `job "report" has not run yet`)
	c.matches(c.run("job", "logs", "clicks"), cmdline.ExitUsage, `^$`, `no such job: "clicks"`)
	c.daemon("--node-id", "db1")
	c.until("db1\n", "leader")
	c.matches(c.run("job", "run", "report"), cmdline.ExitOK, `has begun on db1`, `^$`)

	follower := &buffer{}
	followed := result{}
	over := make(chan struct{})
	go func() {
		defer close(over)
		stderr := &buffer{}
		followed.code = run(t.Context(), cmdline.Env{Args: []string{"job", "logs", "report", "-f"}, Stdin: strings.NewReader(""), Stdout: follower, Stderr: stderr,
			Getenv: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }})
		followed.stdout, followed.stderr = follower.String(), stderr.String()
	}()
	testsupport.Await(t, "lines of the run while it goes on", func() bool { return follower.String() == "line 1\nline 2\n" }, follower)
	c.file("go-on", "")
	testsupport.Receive(t, "the end of the run", over)
	c.matches(followed, cmdline.ExitFailure, `^line 1\nline 2\nline 3\nline 4\nline 5\n\*\*\*\n$`, `^baton: run \S+ of job "report": failed in \S+: exit code 3\n$`)
	id := regexp.MustCompile(`run (\S+) of`).FindStringSubmatch(followed.stderr)[1]
	c.want(cmdline.ExitOK, "line 1\nline 2\nline 3\nline 4\nline 5\n***\n", "", "job", "logs", "report")
	c.want(cmdline.ExitOK, "line 5\n***\n", "", "job", "logs", "report", "--tail", "2", "--run", id)
	c.want(cmdline.ExitOK, "", "", "job", "logs", "report", "--tail", "0")
	c.matches(c.run("job", "logs", "report", "--run", "nosuch"), cmdline.ExitFailure, `^$`, `has no run nosuch`)
	server.Client(t).Do("DEL", "{baton}:job:report:output:"+id)
	c.matches(c.run("job", "logs", "report"), cmdline.ExitOK, `^line 1\n(.*\n)*\*\*\*\n$`, `baton has kept only the end of the output of run \S+`)

	c.matches(c.run("job", "run", "quiet", "-w"), cmdline.ExitOK, `succeeded`, `^$`)
	c.matches(c.run("job", "logs", "quiet"), cmdline.ExitOK, `^$`, `^baton: run \S+ has printed nothing\n$`)
	c.matches(c.run("job", "logs", "quiet", "-f"), cmdline.ExitOK, `^$`, `has printed nothing\nbaton: run \S+ of job "quiet": succeeded in`)
	c.matches(c.run("job", "run", "flood", "-w"), cmdline.ExitOK, `succeeded`, `^$`)
	flood := c.run("job", "logs", "flood")
	c.matches(flood, cmdline.ExitOK, `xend\n$`, `^baton: \d+ bytes are missing: baton keeps only the last 256 KiB of output of each run\n$`)
	if n := len(flood.stdout); n < 256<<10 || n > 320<<10 || strings.Trim(flood.stdout, "x") != "end\n" {
		t.Errorf("%d bytes of the flood", n)
	}
}
