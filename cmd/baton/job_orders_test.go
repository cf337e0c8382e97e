package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/operate"
)

// commandCLI returns a cli with a node that leads, a job that sleeps, a job that fails, and a job with its own lock.
func commandCLI(t *testing.T) *cli {
	t.Helper()
	t.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise a warden under the race detector would run for one more second
	c, server := newCLI(t), useRedis(t)
	c.file("baton.yaml", fmt.Sprintf(`
redis: {url: %q}
election: {ttl: 10s, heartbeat_interval: 500ms}
http: {listen: "off"}
defaults: {grace: 1s, time_zone: Europe/Berlin}
jobs:
  - {name: report, schedule: "@yearly", command: [/bin/sleep, "60"]}
  - {name: fails, schedule: "@yearly", command: [/bin/sh, -c, "echo hush-hush; exit 3"]}
  - {name: apart, schedule: "@yearly", command: [/bin/true], lock: other, time_zone: UTC}
`, server.URL()))
	c.env["BATON_CONFIG"] = "baton.yaml"
	return c
}

// first returns the first text that matches a pattern.
func first(t *testing.T, pattern, text string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no %s in\n%s", pattern, text)
	}
	return found[1]
}

func TestRunsAreForcedAndCancelledFromTheCommandLine(t *testing.T) {
	c := commandCLI(t)
	c.matches(c.run("job", "cancel", "report"), cmdline.ExitNoLeader, `^$`, `nobody holds lock "baton"`)
	c.matches(c.run("job", "run", "apart"), cmdline.ExitNoLeader, `^$`, `nobody holds lock "other"`)
	c.matches(c.run("job", "history", "report"), cmdline.ExitOK, `^there is no record of job "report": `, `^$`)
	c.daemon("--node-id", "db1")
	c.until("db1\n", "leader")
	c.matches(c.run("job", "cancel", "report"), cmdline.ExitFailure, `^$`, `job "report" has no open run and no retry: nothing was cancelled`)
	c.matches(c.run("job", "cancel", "clicks"), cmdline.ExitUsage, `^$`, `no such job: "clicks"`)
	one := first(t, `^run (\S+) `, c.run("job", "run", "report", "--reason", "month's end").stdout)
	c.matches(c.run("job", "run", "report"), cmdline.ExitFailure, `^$`, `job "report" is already running: its run \S+ started \S+ ago`)
	two := first(t, `^run (\S+) `, c.run("job", "run", "report", "--force").stdout)
	c.matches(c.run("job", "list"), cmdline.ExitOK, `(?m)^report +@yearly +2 runs, the latest for \S+ +in \d+d +never +- +-$`, `^$`)
	c.matches(c.run("job", "show", "report"), cmdline.ExitOK,
		`(?ms)^runs +sleep$.*^overlap +forbid$.*^run +`+one+` on db1: for \S+, by \S+: month's end$.^run +`+two+` on db1: for \S+, forced by \S+$`, `^$`)
	c.matches(c.run("job", "cancel", "report", "--run", "x"), cmdline.ExitFailure, `^$`, `run x of job "report" is not open: nothing was cancelled; baton job show report lists open runs`)
	c.matches(c.run("job", "cancel", "report", "--run", one, "--reason", "too slow"), cmdline.ExitOK,
		`^run `+one+` of job "report" has the order to end; baton job history report shows its result\n$`, `^$`)
	var cancelled operate.Outcome
	if err := json.Unmarshal([]byte(c.run("job", "cancel", "report", "-o", "json").stdout), &cancelled); err != nil || !strings.Contains(strings.Join(cancelled.Runs, " "), two) {
		t.Errorf("cancelled: %+v, %v", cancelled, err)
	}
	c.until("too slow", "job", "history", "report") // the first run has ended
	c.until("forced by", "job", "history", "report")
	c.matches(c.run("job", "history", "report"), cmdline.ExitOK,
		`(?ms)^WHEN \(Europe/Berlin\) +TRIGGER +ATTEMPT +STATE +TOOK +EXIT +NODE +EPOCH +ERROR OR REASON$.*`+
			`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +manual +1 +cancelled +\S+ +- +db1 +…\d+ +cancelled by \S+: too slow.* \(by \S+: month's end\)$.*`+
			`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +- +- +missed +- +- +db1 +…\d+ +there was no record of the job: .* slots count from \d\d:\d\d`, `^$`)
	c.matches(c.run("job", "history", "report", "-n", "0"), cmdline.ExitUsage, `^$`, `-n 0: must be above 0`)

	c.matches(c.run("job", "run", "fails", "--watch"), cmdline.ExitFailure, `failed: exit code 3 in \S+\n$`, `run \S+ of job "fails": failed: .*exit code 3`)
	c.matches(c.run("job", "list"), cmdline.ExitOK, `(?m)^fails +@yearly +failing +in \d+d +failed \(exit code 3\) \S+ ago `, `^$`)
	var entries []operate.Entry
	if err := json.Unmarshal([]byte(c.run("job", "history", "fails", "-n", "1", "-o", "json").stdout), &entries); err != nil || len(entries) != 1 ||
		*entries[0].Run.ExitCode != 3 || entries[0].Run.Output != "hush-hush\n" {
		t.Errorf("history: %+v, %v", entries, err)
	}
	if shown := c.run("job", "show", "fails").stdout; strings.Contains(shown, "hush") || !strings.Contains(shown, "runs      sh\n") {
		t.Errorf("of a command the program is shown, and no argument:\n%s", shown)
	}
	c.matches(c.run("job", "run", "apart", "--watch"), cmdline.ExitOK, `^(running.*\n)*succeeded: exit code 0 in \S+\n$`, `^$`)
}

func TestJobsArePausedForAWhileAndAllTogether(t *testing.T) {
	c := commandCLI(t)
	for _, bad := range []struct {
		why  string
		args []string
	}{
		{"say which job, or --all", nil},
		{"say either report or --all", []string{"report", "--all"}},
		{"--for -1s: must be a duration above 0", []string{"report", "--for", "-1s"}},
		{"--for and --until: give one of them", []string{"report", "--for", "1h", "--until", "10:00"}},
		{"--until is empty: write a time such as", []string{"report", "--until", ""}},
		{`--until "tomorrow": write a time such as`, []string{"report", "--until", "tomorrow"}},
		{`--until "2020-01-01 10:00" has passed`, []string{"report", "--until", "2020-01-01 10:00"}},
		{`no such job: "clicks"`, []string{"clicks"}},
		{`the job's name is empty`, []string{""}},
	} {
		c.matches(c.run(append([]string{"job", "pause"}, bad.args...)...), cmdline.ExitUsage, `^$`, regexp.QuoteMeta(bad.why))
	}
	for _, command := range []string{"run", "cancel", "preview", "show", "next", "history", "logs"} {
		c.matches(c.run("job", command), cmdline.ExitUsage, `^$`, `say which job: report, fails, apart\n`)
	}
	c.matches(c.run("job", "resume"), cmdline.ExitUsage, `^$`, `say which job, or --all: report, fails, apart\n`)

	c.matches(c.run("job", "pause", "report", "--for", "2h", "--reason", "upgrade"), cmdline.ExitOK,
		`^job "report" is paused by \S+: upgrade, until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0[12]:00\n$`, `^$`)
	c.matches(c.run("job", "list"), cmdline.ExitOK, `(?m)^report +@yearly +paused for another (2h|1h59m)\S* +once a node leads +never +- +-$`, `^$`)
	c.matches(c.run("job", "pause", "apart", "--until", "2100-01-01T10:00:00+02:00"), cmdline.ExitOK, `^job "apart" is paused by \S+, until 2100-01-01 08:00:00 \+00:00\n$`, `^$`)
	c.matches(c.run("job", "show", "apart"), cmdline.ExitOK, `(?m)^paused +by \S+, since \S+ \S+ [+-]\d\d:\d\d, until \S+ \S+ [+-]\d\d:\d\d; baton job resume apart ends the pause$`, `^$`)
	c.matches(c.run("job", "pause", "--all", "--reason", "restore"), cmdline.ExitOK, `^all jobs are paused by \S+: restore\n$`, `^$`)
	c.matches(c.run("job", "pause", "--all", "--until", "23:59"), cmdline.ExitOK, `^all jobs were paused already, by \S+: restore; the reason is now: by \S+, until \d{4}-\d\d-\d\d 23:59:00 \+0[12]:00\n$`, `^$`)
	c.matches(c.run("job", "pause", "--all"), cmdline.ExitOK, `^all jobs were paused already, by \S+; the reason is now: by \S+\n$`, `^$`)
	c.matches(c.run("job", "list"), cmdline.ExitOK, `(?m)^fails +@yearly +paused with all +paused +never +- +-$`, `^$`)
	c.matches(c.run("status"), cmdline.ExitOK, `(?m)^All jobs are paused by \S+; baton job resume --all ends the pause$`, unhurried)
	c.matches(c.run("job", "resume", "fails"), cmdline.ExitOK, `^job "fails" was not paused; but all jobs are paused by \S+; baton job resume --all ends the pause\n$`, `^$`)
	c.matches(c.run("job", "resume", "--all"), cmdline.ExitOK, `^all jobs are resumed; they were paused by \S+, for \S+\n$`, `^$`)
	c.matches(c.run("job", "resume", "--all"), cmdline.ExitOK, `^all jobs were not paused\n$`, `^$`)
	c.matches(c.run("job", "list"), cmdline.ExitOK, `(?ms)^report .* paused for another .*^fails +@yearly +ready `, `^$`)
	c.matches(c.run("job", "resume", "report"), cmdline.ExitOK, `^job "report" is resumed; it was paused by \S+: upgrade, for \S+\n$`, `^$`)
}
