package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestLogsOfAJobCanBeReadAndFollowed(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0") // a warden under the race detector would live on for a second
	c, server := newCLI(t), useRedis(t)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	c.file("token", "hush-hush\n")
	c.file("baton.yaml", fmt.Sprintf(`
redis: {url: %q}
election: {ttl: 10s}
http: {listen: "off"}
defaults: {grace: 1s}
jobs:
  - name: report
    schedule: "@yearly"
    shell: true
    command: 'for i in 1 2 3 4 5; do echo line $i; sleep 0.2; done; echo "$TOKEN"; exit 3'
    secrets: {TOKEN: %q}
  - {name: quiet, schedule: "@yearly", command: [/bin/true]}
  - {name: flood, schedule: "@yearly", shell: true, command: 'head -c 1000000 /dev/zero | tr "\0" x; echo end'}
`, server.URL(), filepath.Join(dir, "token")))
	c.env["BATON_CONFIG"] = "baton.yaml"
	c.matches(c.run("job", "logs", "report"), exitFailure, `^$`, `job "report" has not run yet`)
	c.matches(c.run("job", "logs", "clicks"), exitUsage, `^$`, `no such job: "clicks"`)
	c.daemon("--node-id", "db1")
	c.until("db1\n", "leader")
	c.matches(c.run("job", "run", "report"), exitOK, `has begun on db1`, `^$`)

	began := time.Now()
	followed := c.run("job", "logs", "report", "-f")
	c.matches(followed, exitFailure, `^line 1\nline 2\nline 3\nline 4\nline 5\n\*\*\*\n$`, `^baton: run \S+ of job "report": failed in \d+(\.\d)?s: exit code 3\n$`)
	if took := time.Since(began); took < 500*time.Millisecond || took > time.Minute {
		t.Errorf("it was followed for %v", took)
	}
	id := regexp.MustCompile(`run (\S+) of`).FindStringSubmatch(followed.stderr)[1]
	c.want(exitOK, "line 1\nline 2\nline 3\nline 4\nline 5\n***\n", "", "job", "logs", "report")
	c.want(exitOK, "line 5\n***\n", "", "job", "logs", "report", "--tail", "2", "--run", id)
	c.want(exitOK, "", "", "job", "logs", "report", "--tail", "0")
	c.matches(c.run("job", "logs", "report", "--run", "nosuch"), exitFailure, `^$`, `knows no run nosuch`)
	if _, err := server.Conn().Do("DEL", "{baton}:job:report:output:"+id); err != nil {
		t.Fatal(err)
	}
	c.matches(c.run("job", "logs", "report"), exitOK, `^line 1\n(.*\n)*\*\*\*\n$`, `only the end is left of what run \S+ printed`)

	c.matches(c.run("job", "run", "quiet", "-w"), exitOK, `succeeded`, `^$`)
	c.matches(c.run("job", "logs", "quiet"), exitOK, `^$`, `^baton: run \S+ has printed nothing\n$`)
	c.matches(c.run("job", "logs", "quiet", "-f"), exitOK, `^$`, `has printed nothing\nbaton: run \S+ of job "quiet": succeeded in`)
	c.matches(c.run("job", "run", "flood", "-w"), exitOK, `succeeded`, `^$`)
	flood := c.run("job", "logs", "flood")
	c.matches(flood, exitOK, `xend\n$`, `^baton: \d+ bytes are left out: of each run the last 256 KiB are kept\n$`)
	if n := len(flood.stdout); n < 256<<10 || n > 320<<10 || strings.Trim(flood.stdout, "x") != "end\n" {
		t.Errorf("%d bytes of the flood", n)
	}
}
