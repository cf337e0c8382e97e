package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/diagnose"
	"baton/internal/testsupport"
)

func TestStatusOfAPausedElectionPromisesNoNextRun(t *testing.T) {
	var s diagnose.Snapshot
	if err := json.Unmarshal([]byte(`{"paused": {"reason": "by alice"}, "jobs": [{"name": "a", "schedule": "@hourly", "next_run": "2026-11-21T17:00:00Z"}]}`), &s); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := printStatus(&out, s); err != nil || !regexp.MustCompile(`(?m)^a +@hourly +paused +never`).MatchString(out.String()) {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestAPauseIsOrderedShownAndEnded(t *testing.T) {
	c := newCLI(t)
	c.env["BATON_REDIS"] = useRedis(t).URL()
	c.env["BATON_TTL"] = lease
	log1, _ := c.daemon("--node-id", "db1", "--http", "off")
	c.until("db1\n", "leader")
	log2, _ := c.daemon("--node-id", "db2", "--http", "off")
	c.until("db2", "status")

	got := c.run("pause", "--reason", "upgrade of <main>")
	if !regexp.MustCompile(`^paused by \S+: upgrade of <main>: no node leads, \d+ ms after the order; db1 led before\n$`).MatchString(got.stdout) || got.code != cmdline.ExitOK {
		t.Fatalf("pause: %+v", got)
	}
	if got := c.run("status").stdout; !regexp.MustCompile(`^Lock "baton": no node leads: paused by \S+: upgrade of <main>, for \S+\n`).MatchString(got) {
		t.Errorf("status: %s", got)
	}
	if got := c.run("leader"); got.code != cmdline.ExitNoLeader || !strings.Contains(got.stderr, `nobody holds lock "baton": paused by `) {
		t.Errorf("leader: %+v", got)
	}
	for _, command := range []string{"stepdown", "drill"} {
		if got := c.run(command); got.code != cmdline.ExitNoLeader || !strings.Contains(got.stderr, `nobody holds lock "baton": paused by `) {
			t.Errorf("%s: %+v", command, got)
		}
	}
	if got := c.run("pause", "--reason", "still at it"); got.code != cmdline.ExitOK || !strings.HasPrefix(got.stdout, "the election was paused already, by ") || !strings.Contains(got.stdout, ": still at it; no node led\n") {
		t.Errorf("paused again: %+v", got)
	}
	for node, log := range map[string]*buffer{"db1": log1, "db2": log2} {
		c.untilLog(log, "still at it", 1)
		if n := strings.Count(log.String(), "standing by: no node leads"); n > 2 {
			t.Errorf("%s told %d times why no node leads, want once for each reason:\n%s", node, n, log)
		}
	}

	resumed := c.run("resume")
	if !regexp.MustCompile(`^resumed; it was paused by \S+: still at it; db\d leads: epoch \d+, \d+ ms after the order\n$`).MatchString(resumed.stdout) {
		t.Errorf("resume: %+v", resumed)
	}
	c.want(cmdline.ExitOK, "the election was not paused\n", "", "resume")

	var events []struct{ Event, Reason string }
	if err := json.Unmarshal([]byte(c.run("status", "--events", "6", "-o", "json").stdout), &events); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range events {
		told = append(told, e.Event)
	}
	// A node may win before the end of the pause is recorded.
	if got := strings.Join(told, " "); got != "won paused stepped_down paused resumed won" && got != "won paused stepped_down paused won resumed" {
		t.Errorf("the events are %q, want won paused stepped_down paused resumed won", told)
	}
	table := c.run("status", "--events=2")
	const resumedLine, wonLine = `\S+ \S+ [+-]\d\d:\d\d +resumed +- +…\d+ +by \S+\n`, `\S+ \S+ [+-]\d\d:\d\d +won +db\d +…\d+ *\n`
	if !regexp.MustCompile(`^TIME +EVENT +NODE +EPOCH +REASON\n(` + resumedLine + wonLine + `|` + wonLine + resumedLine + `)$`).MatchString(table.stdout) {
		t.Errorf("status --events=2: %+v", table)
	}
}

// untilLog waits until the log contains a text the given number of times.
func (c *cli) untilLog(log *buffer, text string, times int) {
	c.t.Helper()
	testsupport.Await(c.t, fmt.Sprintf("%q %d times in the log", text, times), func() bool {
		return strings.Count(log.String(), text) >= times
	}, log)
}

func TestAPauseWithoutALeaderHoldsForTheNodesToCome(t *testing.T) {
	c := newCLI(t)
	c.env["BATON_REDIS"] = useRedis(t).URL()
	if got := c.run("status", "--events"); got.code != cmdline.ExitOK || got.stdout != "nothing has happened yet\n" {
		t.Errorf("the history of an election that never was: %+v", got)
	}
	if got := c.run("pause"); got.code != cmdline.ExitOK || !regexp.MustCompile(`^paused by \S+: no node led\n$`).MatchString(got.stdout) {
		t.Errorf("pause: %+v", got)
	}
	log, _ := c.daemon("--node-id", "db1", "--http", "off")
	c.untilLog(log, "standing by: no node leads", 1)
	if got := c.run("resume", "--no-wait"); got.code != cmdline.ExitOK || !strings.HasPrefix(got.stdout, "resumed; it was paused by ") {
		t.Errorf("resume: %+v", got)
	}
	c.until("db1\n", "leader")
}

func TestResumeTellsThatNobodyIsThereToLead(t *testing.T) {
	c := newCLI(t)
	c.env["BATON_REDIS"] = useRedis(t).URL()
	if got := c.run("pause"); got.code != cmdline.ExitOK {
		t.Fatalf("pause: %+v", got)
	}
	if got := c.run("resume", "--wait", "50ms"); got.code != cmdline.ExitNoLeader || !strings.HasPrefix(got.stderr, "baton: resumed, but after 50ms no node leads") {
		t.Errorf("resume: %+v", got)
	}
}

func TestAPauseTellsThatAForeignClientGoesOn(t *testing.T) {
	c := newCLI(t)
	r := useRedis(t)
	c.env["BATON_REDIS"] = r.URL()
	r.Client(t).Do("SET", "baton", "java")
	if got := c.run("pause", "--wait", "50ms"); got.code != cmdline.ExitFailure || !strings.Contains(got.stderr, "held by a client that is not baton (owner java)") {
		t.Errorf("pause: %+v", got)
	}
}

func TestEventsTakeANumberAndNothingElse(t *testing.T) {
	c := newCLI(t)
	for args, want := range map[string]string{
		"status 5":               `"5": status takes no arguments; to print N events: --events N`,
		"status --events x":      `"x": status takes no arguments; to print N events: --events N`,
		"status --events 0":      "--events 0: must be above 0",
		"status --events=-1":     "--events -1: must be above 0",
		"status --events -w":     "either --events or --watch",
		"status --events 1 2":    "takes one argument, got 2",
		"status --events=three":  "invalid argument",
		"pause now":              `pause takes no arguments, got "now"`,
		"resume --wait tomorrow": "invalid argument",
	} {
		if got := c.run(strings.Fields(args)...); got.code != cmdline.ExitUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("baton %s: %+v", args, got)
		}
	}
}

func TestNoNodeLeadsAfterAResumeIfAForeignClientHasTheLock(t *testing.T) {
	c, r := newCLI(t), useRedis(t)
	c.env["BATON_REDIS"], c.env["BATON_TTL"] = r.URL(), lease
	if got := c.run("pause", "--no-wait"); got.code != cmdline.ExitOK {
		t.Fatalf("%+v", got)
	}
	r.Client(t).Do("SET", "baton", "a-script")
	if got := c.run("resume", "--wait", "100ms"); got.code != cmdline.ExitNoLeader || got.stdout != "" || !strings.Contains(got.stderr, `resumed, but lock "baton" is held by a client that is not baton (owner a-script)`) {
		t.Errorf("%+v", got)
	}
}
