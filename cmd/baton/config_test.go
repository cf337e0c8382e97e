package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"baton/cmd/baton/internal/cmdline"
	"baton/configs"
	"baton/internal/config"
	"baton/internal/testsupport/cluster"
)

const small = `node: {id: n1}
databases:
  main: {driver: sqlite, dsn: /tmp/x.db}
jobs:
  - name: views
    schedule: "@every 5s"
    flush:
      from: {type: counters, key: views}
      to: {database: main, table: articles, key: [id]}
      columns: {id: $field, views: $value}
`

func TestCheckSaysThatAConfigurationIsGood(t *testing.T) {
	c := newCLI(t)
	c.file("a.yaml", small)
	const ok = "a.yaml: ok, 1 job, 1 database\n\nJOB    DUE        NEXT"
	c.env["BATON_CONFIG"] = "a.yaml"
	for _, args := range [][]string{{"a.yaml"}, {"--config", "a.yaml"}, {}} {
		got := c.run(append([]string{"config", "check"}, args...)...)
		if got.code != cmdline.ExitOK || got.stderr != "" || !strings.HasPrefix(got.stdout, ok) || !strings.Contains(got.stdout, "\nviews  every 5 s  ") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	c.file("none.yaml", "node: {id: n}\n")
	c.want(cmdline.ExitOK, "none.yaml: ok, 0 jobs, 0 databases\n", "", "config", "check", "none.yaml")
	c.want(cmdline.ExitUsage, "", "baton: read the configuration: open b.yaml: no such file or directory; to write one: baton config init b.yaml\n",
		"config", "check", "--config", "b.yaml")
	c.want(cmdline.ExitUsage, "", "baton: --config is empty; name a file\n", "config", "check", "--config", "")
}

func TestCheckWithoutAFileHasNothingToCheck(t *testing.T) {
	if _, err := os.Stat(cmdline.DefaultConfig); err == nil {
		t.Fatalf("%s is in the way of this test", cmdline.DefaultConfig)
	}
	newCLI(t).want(cmdline.ExitUsage, "", "baton: there is no configuration file: name a file, set $BATON_CONFIG, or create /etc/baton/baton.yaml\n", "config", "check")
}

func TestCheckListsEveryProblemWithItsPlace(t *testing.T) {
	c := newCLI(t)
	c.file("a.yaml", "election: {tll: 5s}\nlog: {level: loud}\n")
	c.env["BATON_TTL"] = "10"
	const problems = `baton: 3 problems in the configuration:
a.yaml:1:12: election.tll: unknown key; did you mean ttl?
a.yaml:2:7: log.level: "loud" is not known here; write debug, info, warn or error
BATON_TTL: election.ttl: bad duration "10": write a number and a unit, for example 500ms, 10s or 1m30s
`
	c.want(cmdline.ExitUsage, "", problems, "config", "check", "a.yaml")

	got := c.run("config", "check", "-o", "json", "a.yaml")
	var report checked
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.code != cmdline.ExitUsage || got.stderr != problems {
		t.Fatalf("%v: %+v", err, got)
	}
	if report.OK || report.File != "a.yaml" || len(report.Problems) != 3 || report.Problems[1].Line != 2 || report.Problems[1].Path != "log.level" {
		t.Errorf("%+v", report)
	}
}

func TestCheckAsJSONOfAGoodFile(t *testing.T) {
	c := newCLI(t)
	c.file("a.yaml", small)
	got := c.run("config", "check", "-o", "json", "a.yaml")
	var report checked
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.code != cmdline.ExitOK || got.stderr != "" {
		t.Fatalf("%v: %+v", err, got)
	}
	if !report.OK || report.File != "a.yaml" || report.Jobs != 1 || report.Databases != 1 || !strings.Contains(got.stdout, `"problems": []`) {
		t.Errorf("%+v", report)
	}
	if len(report.Schedules) != 1 || report.Schedules[0].Words != "every 5 s" || len(report.Schedules[0].Next) != shownSlots {
		t.Errorf("%+v", report.Schedules)
	}
}

// TestCheckShowsTheSchedulesOfManyJobs checks the tables of many jobs. Each job must have one line, and jobs that daylight saving changes
// in the same way must share one line.
func TestCheckShowsTheSchedulesOfManyJobs(t *testing.T) {
	text := "node: {id: n}\njobs:\n  - {name: watch, schedule: \"@always\", command: [x]}\n"
	for i := range 200 {
		text += fmt.Sprintf("  - {name: job-%d, schedule: \"30 2 * * *\", time_zone: Europe/Berlin, command: [x]}\n", i)
	}
	c := newCLI(t)
	c.file("a.yaml", text)
	got := c.run("config", "check", "a.yaml")
	for _, want := range []string{
		"\nwatch    all the time while leading          -                            -                            -\n",
		"\njob-199  at 02:30 every day (Europe/Berlin)  ",
		" 03:00 +02:00 Europe/Berlin: the clock is put forward: 02:30 does not exist, runs at 03:00: job-0, job-1, job-2 and 197 more\n",
		" 02:30 +02:00 Europe/Berlin: the clock is put back: 02:30 comes twice, runs the first time: job-0, job-1, job-2 and 197 more\n",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q", want)
		}
	}
	if lines := strings.Count(got.stdout, "\n"); got.code != cmdline.ExitOK || lines > 210 {
		t.Errorf("%d lines: %+v", lines, got)
	}
}

func TestShowIsTheConfigurationInEffect(t *testing.T) {
	c := newCLI(t)
	c.file("a.yaml", "node: {id: n1}\nelection: {lock_key: file, ttl: 3s}\n")
	c.env["BATON_LOCK_KEY"], c.env["BATON_TTL"] = "env", "4s"
	c.want(cmdline.ExitOK, `node:
  id: n1
  candidate: false
redis:
  url: redis://127.0.0.1:6379/0
election:
  lock_key: env
  ttl: 2s
  heartbeat_interval: 400ms
  attempt_timeout: 200ms
  poll_interval: 400ms
  drain: 400ms
  acquire: lua
  lock_format: string
  abdicate_after: 30s
  rollout_within: 5m
http:
  listen: 127.0.0.1:9747
log:
  level: info
  format: text
history:
  keep: 200
  max_age: 720h
defaults:
  time_zone: UTC
  catch_up: latest
  overlap: forbid
  on_lost: skip
  timeout: 1h
  grace: 10s
`, "", "config", "show", "--ttl", "2s", "a.yaml")
}

func TestShowOfADeploymentHidesItsSecrets(t *testing.T) {
	c := newCLI(t)
	c.file("a.yaml", `
redis:
  sentinel: {master: mymaster, addresses: ["10.0.0.1:26379", "10.0.0.2:26379"], password: "${PASSWORD}"}
  password: ${PASSWORD}
  database: 3
  tls: {}
`)
	c.env["PASSWORD"] = "pl4nted-s3cret"
	got := c.run("config", "show", "a.yaml")
	const want = `redis:
  password: "***"
  database: 3
  sentinel:
    master: mymaster
    addresses:
      - 10.0.0.1:26379
      - 10.0.0.2:26379
    password: "***"
  tls: {}
election:
`
	if got.code != cmdline.ExitOK || !strings.Contains(got.stdout, want) || strings.Contains(got.stdout, "pl4nted") {
		t.Errorf("%+v\nwant %s", got, want)
	}
	// A URL on the command line names another server, regardless of the deployment in the file.
	got = c.run("config", "show", "--redis", "rediss://other:6380/1", "a.yaml")
	if got.code != cmdline.ExitOK || !strings.Contains(got.stdout, "url: rediss://other:6380/1\n") || strings.Contains(got.stdout, "sentinel") {
		t.Errorf("%+v", got)
	}
}

func TestShowNeedsNoFile(t *testing.T) {
	c := newCLI(t)
	got := c.run("config", "show", "--node-id", "n7", "-o", "json")
	var shown struct {
		Node     struct{ ID string }
		Election struct{ TTL string }
	}
	if err := json.Unmarshal([]byte(got.stdout), &shown); err != nil || got.code != cmdline.ExitOK {
		t.Fatalf("%v: %+v", err, got)
	}
	if shown.Node.ID != "n7" || shown.Election.TTL != "10s" {
		t.Errorf("%+v", shown)
	}
}

func TestNoCommandPrintsASecret(t *testing.T) {
	const planted = "pl4nted-s3cret"
	c := newCLI(t)
	c.file("a.yaml", strings.Replace(small, "/tmp/x.db", "u:"+planted+"@/db", 1)+"redis: {url: \"redis://u:"+planted+"@h:1/0\"}\n")
	c.file("bad.yaml", "redis: {url: \"redis://u:"+planted+"@h:1/x\"}\ndatabases: {a: "+planted+"}\n")
	c.env["BATON_REDIS"] = "rediss://:" + planted + "@other"
	for _, args := range [][]string{
		{"config", "show", "a.yaml"},
		{"config", "show", "-o", "json", "a.yaml"},
		{"config", "check", "a.yaml"},
		{"config", "check", "bad.yaml"},
		{"config", "check", "-o", "json", "bad.yaml"},
		{"config", "show", "--redis", "redis://:" + planted + "@h/nan", "a.yaml"},
		{"config", "show", "--redis", planted, "a.yaml"},
		{"config", "show", "--ttl", "x", "--redis", "redis://:" + planted + "@%zz"},
	} {
		got := c.run(args...)
		if got.stdout+got.stderr == "" || strings.Contains(got.stdout+got.stderr, planted) {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// TestCheckRefusesADSNWithWhichRunDoesNotStart checks that config check finds the problems that prevent run from starting, with the same
// text and exit code.
func TestCheckRefusesADSNWithWhichRunDoesNotStart(t *testing.T) {
	c := newCLI(t)
	c.file("two.dsn", "u:x@127.0.0.1:1/db\n")
	for _, database := range []string{
		`{driver: postgres, dsn: "postgres://app:S3cret@Passw0rd@host/db"}`, `{driver: mysql, dsn_file: two.dsn}`,
		`{driver: postgres, dsn: "jdbc:postgresql://h/db?password=Passw0rd"}`, `{driver: mysql, dsn: "Server=h;Pwd=Passw0rd"}`,
		`{driver: postgres, dsn: "host=h dbname=Passw0rd sslcrl=Passw0rd"}`,
	} {
		c.file("a.yaml", "redis: {url: \"redis://127.0.0.1:1\"}\nhttp: {listen: off, admin_socket: off}\ndatabases:\n  main: "+database+"\n")
		checked := c.run("config", "check", "a.yaml")
		if checked.code != cmdline.ExitUsage || !strings.HasPrefix(checked.stderr, "baton: a.yaml:4:") || strings.Contains(checked.stderr, "Passw0rd") {
			t.Fatalf("check %s: %+v", database, checked) // otherwise run would not end
		}
		if ran := c.run("run", "--config", "a.yaml"); ran.code != checked.code || !strings.Contains(ran.stderr, checked.stderr) {
			t.Errorf("run %s: %+v, want what check says: %s", database, ran, checked.stderr)
		}
		if text := c.run("config", "check", "--no-files", "a.yaml"); (text.code == cmdline.ExitOK) != strings.Contains(database, "dsn_file") {
			t.Errorf("check --no-files %s: %+v", database, text)
		}
	}
}

func TestInitWritesTheExampleAndKeepsWhatIsThere(t *testing.T) {
	c := newCLI(t)
	c.want(cmdline.ExitOK, "wrote baton.yaml with the lock key baton; edit it, then: baton config check baton.yaml\n", "", "config", "init")
	got := c.run("config", "check", "baton.yaml")
	if _, err := os.Stat("/etc/baton/main.dsn"); err != nil && !strings.HasSuffix(got.stderr, "databases.main.dsn_file: /etc/baton/main.dsn does not exist; create it, or correct the path\n") {
		t.Errorf("it tells what is left to do: %+v", got)
	}
	c.file("mine.dsn", "postgres://u@h/d\n")
	here, _ := filepath.Abs("mine.dsn")
	c.file("edited.yaml", strings.Replace(string(configs.Example), "/etc/baton/main.dsn", here, 1))
	if got := c.run("config", "check", "edited.yaml"); got.code != cmdline.ExitOK || !strings.HasPrefix(got.stdout, "edited.yaml: ok, 2 jobs, 1 database\n") {
		t.Errorf("%+v", got)
	}
	if info, err := os.Stat("baton.yaml"); err != nil || info.Mode().Perm()&0o007 != 0 {
		t.Errorf("others can read it: %v %v", info.Mode(), err)
	}

	c.file("mine.yaml", "mine")
	c.want(cmdline.ExitFailure, "", "baton: mine.yaml exists already; use --force to overwrite it\n", "config", "init", "mine.yaml")
	if b, _ := os.ReadFile("mine.yaml"); string(b) != "mine" {
		t.Errorf("overwritten by %q", b)
	}
	c.want(cmdline.ExitOK, "wrote mine.yaml with the lock key baton; edit it, then: baton config check mine.yaml\n", "", "config", "init", "--force", "mine.yaml")
	if b, _ := os.ReadFile("mine.yaml"); string(b) != string(configs.Example) {
		t.Errorf("got %q", b)
	}
	if info, _ := os.Stat("mine.yaml"); info.Mode().Perm() != 0o600 {
		t.Errorf("the file's own mode became %v", info.Mode())
	}
	c.want(cmdline.ExitOK, string(configs.Example), "", "config", "init", "-")

	c.want(cmdline.ExitOK, strings.Replace(string(configs.Example), "  lock_key: baton\n", "  lock_key: shop\n", 1), "",
		"config", "init", "--lock-key", "shop", "-")
	if got := c.run("config", "init", "--lock-key", "my shop", "shop.yaml"); got.code != cmdline.ExitUsage || !strings.Contains(got.stderr, "has a space") {
		t.Errorf("%+v", got)
	}

	got = c.run("config", "init", "none/baton.yaml")
	if got.code != cmdline.ExitFailure || !strings.HasPrefix(got.stderr, "baton: write the example: ") {
		t.Errorf("%+v", got)
	}
	if left, _ := filepath.Glob(".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestConfigurationsToBeginWithNameTheSchemaForEditors checks that the files that users begin with name the schema at the place where the
// packages install it.
func TestConfigurationsToBeginWithNameTheSchemaForEditors(t *testing.T) {
	c := newCLI(t)
	c.want(cmdline.ExitOK, string(config.Schema), "", "config", "schema")
	const first = "# yaml-language-server: $schema=/usr/share/baton/baton.schema.json\n"
	if got := c.run("config", "init", "-"); !strings.HasPrefix(got.stdout, first) {
		t.Errorf("%.200s", got.stdout)
	}
}

// TestBinaryPassesOnItsExitCode is the only test of main. It checks that main passes on arguments, streams and the exit code.
func TestBinaryPassesOnItsExitCode(t *testing.T) {
	binary := cluster.Build(t)
	cmd := exec.CommandContext(t.Context(), binary, "version")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "baton test (commit ") {
		t.Errorf("%v: %s", err, out)
	}
	cmd = exec.CommandContext(t.Context(), binary, "nonsense")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != cmdline.ExitUsage {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}

func TestCheckReadsTheFilesThatTheConfigurationNames(t *testing.T) {
	c := newCLI(t)
	dir := t.TempDir()
	c.file("a.yaml", "http: {token_file: "+dir+"/token}\nredis: {password_file: "+dir+"/pw}\n")
	c.env["STATE_DIRECTORY"] = "/nowhere"
	missing := "2:9: redis.password_file: " + dir + "/pw does not exist; create it, or correct the path\n"
	c.want(cmdline.ExitUsage, "", "baton: 2 problems in the configuration:\na.yaml:1:8: http.token_file: "+dir+"/token does not exist; create it, or correct the path\na.yaml:"+missing, "config", "check", "a.yaml")
	c.file(filepath.Join(dir, "token"), "0123456789abcdef\n")
	c.want(cmdline.ExitUsage, "", "baton: a.yaml:"+missing, "config", "check", "a.yaml")
	c.want(cmdline.ExitOK, "a.yaml: ok, 0 jobs, 0 databases\n", "", "config", "check", "--no-files", "a.yaml")
	var report checked
	got := c.run("config", "check", "a.yaml", "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.code != cmdline.ExitUsage || report.OK || len(report.Problems) != 1 || report.Problems[0].Line != 2 || len(report.Warnings) != 0 {
		t.Errorf("%+v: %v", got, err)
	}
	// The credentials of a unit that is not running do not exist, which is no mistake of the user.
	c.env["CREDENTIALS_DIRECTORY"] = filepath.Join(dir, "baton.service")
	c.file("b.yaml", "redis: {password_file: \"${CREDENTIALS_DIRECTORY}/pw\"}\n")
	c.matches(c.run("config", "check", "b.yaml"), cmdline.ExitOK, `^b.yaml: ok, 0 jobs, 0 databases\n$`, `^baton: warning: b\.yaml:1:9: redis\.password_file: \S+/pw is not there yet`)
	got = c.run("config", "check", "b.yaml", "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.code != cmdline.ExitOK || got.stderr != "" || !report.OK || len(report.Warnings) != 1 {
		t.Errorf("%+v: %v", got, err)
	}
}
