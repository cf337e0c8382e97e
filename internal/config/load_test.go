package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// read returns the configuration with the given text as its file, as `baton run` reads it with the given environment and flags.
func read(t *testing.T, text string, env, flags map[string]string) (Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("baton.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(Input{Path: "baton.yaml", Env: lookup(env), Flags: lookup(flags), Checks: Checks{
		Schedule: func(spec, zone string) error {
			if spec == "61 * * * *" {
				return errors.New("minute 61 of " + zone + " does not exist")
			}
			return nil
		},
		Interval: func(spec, _ string) time.Duration {
			every, _ := strings.CutPrefix(spec, "@every ")
			if d, err := time.ParseDuration(every); err == nil {
				return d
			}
			return time.Hour
		},
	}})
}

func lookup(m map[string]string) Lookup {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

// full contains every setting of jobs, policies and notifications.
const full = `
node: {id: db1}
max_concurrent_jobs: 20
history: {keep: 50, max_age: 48h}
notify:
  - name: ops
    on: [failed, recovered, late]
    jobs: [report]
    webhook: {url: "https://hooks.example.com/T0/pl4nted-s3cret?x=$${Y}", token_file: "/etc/$${X}/token"}
    timeout: 5s
    give_up_after: 20m
  - name: pager
    command: [/usr/bin/page, "--to", "007", "true", "~", "a: b", "- c", "#d", "", " e ", "two\nlines", "\ttab", "a\r\n\n", "\u0001\u2028", "ü"]
defaults: {time_zone: Asia/Shanghai, timeout: 30m, overlap: queue_one, max_overlap: 3, jitter: 1m, grace: 20s, retry: {delay: 1m, max_delay: 2m}}
jobs:
  - name: report
    schedule: "30 2 * * *"
    lock: reports
    time_zone: Europe/Berlin
    catch_up: all
    starting_deadline: 2h
    overlap: queue_one
    on_lost: rerun
    jitter: 10m
    timeout: 1h30m
    grace: 3s
    retry: {limit: 3, delay: 30s, max_delay: 1h}
    late_after: 3h
    dead_mans_switch: {url_file: "/etc/$${X}/ping"}
    command: "report --yesterday | mail ops"
    shell: true
    working_dir: /srv/${X}
    env: {LEVEL: "1e3", EMPTY: "", PRICE: "$5", API_TOKEN: pl4nted-s3cret, DB_PASSWORD: pl4nted-s3cret, MULTI: "a\nb"}
    env_file: "/$${X}/report.env"
    secrets: {TOKEN: "/etc/$${X}/token"}
    stdin: /srv/in.csv
    log_file: /var/log/report.log
    success_exit_codes: [3]
    stop_signal: SIGINT
    umask: 027
    nice: 10
    limits: {open_files: 1024, processes: 200, address_space: 2147483648, file_size: 1000, cpu_time: 30m}
    user: report
    group: reports
  - name: other
    schedule: "@every 1h"
    dead_mans_switch: https://ping.example.com/pl4nted-s3cret
    command: [/bin/true]
`

// good is the configuration of a node with one job of each kind.
const good = `
node: {id: db1}
databases:
  main: {driver: postgres, dsn_file: /etc/baton/main.dsn}
jobs:
  - name: page-views
    schedule: "@every 5s"
    flush:
      from: {type: counters, key: "views:[0-15]"}
      to: {database: main, table: articles, key: [id]}
      columns: {id: $field, views: $value}
  - name: users
    schedule: "30 2 * * *"
    time_zone: Asia/Shanghai
    timeout: 90s
    starting_deadline: 15m
    flush:
      from: {type: hashes, key: "user:<id>", changed: changed:user}
      to: {database: main, table: users, key: [id]}
      columns: {id: id, name: {missing: error}}
`

func TestLoadedConfigurationIsComplete(t *testing.T) {
	c, err := read(t, good, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.places = nil
	nightly := Default().Defaults
	nightly.TimeZone, nightly.Timeout, nightly.StartingDeadline = "Asia/Shanghai", 90*time.Second, 15*time.Minute
	want := Config{
		Node:  Node{ID: "db1", Candidate: new(true)},
		Redis: Redis{URL: "redis://127.0.0.1:6379/0"},
		Election: Election{LockKey: "baton", TTL: 10 * time.Second, HeartbeatInterval: 2 * time.Second,
			AttemptTimeout: time.Second, PollInterval: 2 * time.Second, Drain: 2 * time.Second,
			Acquire: "lua", LockFormat: "string", AbdicateAfter: 30 * time.Second, RolloutWithin: 5 * time.Minute},
		HTTP:      HTTP{Listen: "127.0.0.1:9747"},
		Log:       Log{Level: "info", Format: "text"},
		History:   History{Keep: 200, MaxAge: 720 * time.Hour},
		Databases: map[string]Database{"main": {Driver: "postgres", DSNFile: "/etc/baton/main.dsn"}},
		Defaults:  Default().Defaults,
		Jobs: []Job{
			{Name: "page-views", Schedule: "@every 5s", Lock: "baton", Policy: Default().Defaults, Flush: Flush{
				From:  From{Type: "counters", Key: "views:[0-15]", Mode: "stage"},
				To:    To{Database: "main", Table: "articles", Key: []string{"id"}, Mode: "upsert", Schema: "verify"},
				Lanes: 1, BatchRows: 5000, BatchBytes: 8 << 20, DeadLetters: DeadLetters{PerBatch: 500},
				Columns: map[string]Column{"id": {From: "$field", Op: "set", Place: 1}, "views": {From: "$value", Op: "add", Place: 2}},
			}},
			{Name: "users", Schedule: "30 2 * * *", Lock: "baton", Policy: nightly, Flush: Flush{
				From:  From{Type: "hashes", Key: "user:<id>", Changed: "changed:user", MaxPct: 10, OnMissing: "delete"},
				To:    To{Database: "main", Table: "users", Key: []string{"id"}, Mode: "upsert", Adopt: "ask", Schema: "verify"},
				Lanes: 1, BatchRows: 5000, BatchBytes: 8 << 20, DeadLetters: DeadLetters{PerBatch: 500},
				Columns: map[string]Column{"id": {From: "id", Op: "set", Place: 1}, "name": {From: "name", Op: "set", Missing: "error", Place: 2}},
			}},
		},
	}
	if diff := cmp.Diff(want, c, cmp.AllowUnexported(Config{})); diff != "" {
		t.Error(diff)
	}
}

func TestEmptyFileIsANodeWithoutJobs(t *testing.T) {
	for _, text := range []string{"", "# nothing yet\n", "---\n", "jobs:\n", "jobs: []\nnode: {}\n", "redis: null\n"} {
		if c, err := read(t, text, nil, nil); err != nil || len(c.Jobs) != 0 || c.Redis.URL == "" {
			t.Errorf("%q: %v, %+v", text, err, c)
		}
	}
}

func TestValuesThatAskForWhatThisVersionDoesAreLetThrough(t *testing.T) {
	_, err := read(t, `
node: {id: "", priority: 0, candidate: true}
election: {acquire: lua}
defaults: {overlap: forbid}
`, nil, nil)
	if err != nil {
		t.Error(err)
	}
}

func TestWordNullIsAChoiceWhereItIsOne(t *testing.T) {
	c, err := read(t, strings.ReplaceAll(strings.ReplaceAll(good,
		"changed: changed:user", "changed: changed:user, on_missing: null"),
		"missing: error", "missing: null, empty: \"null\""), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	col := c.Jobs[1].Flush.Columns["name"]
	if c.Jobs[1].Flush.From.OnMissing != "null" || col.Missing != "null" || col.Empty != "null" {
		t.Errorf("%+v", c.Jobs[1].Flush)
	}
}

func TestEnvironmentIsExpandedInPathsAndURLsOnly(t *testing.T) {
	c, err := read(t, `
node: {id: node}
redis: {url: "redis://${HOST}:6379", username: "${HOST}", password_file: "${CREDENTIALS_DIRECTORY}/pw"}
election: {lock_key: "{HOST}"}
http: {token_file: "${CREDENTIALS_DIRECTORY}/token", tls: {cert_file: "/${HOST}.pem", key_file: "${CREDENTIALS_DIRECTORY}/key"}}
databases:
  main: {driver: sqlite, dsn: "$HOST $${HOST} ${HOST}"}
`, map[string]string{"HOST": "example.com", "CREDENTIALS_DIRECTORY": "/run/credentials"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Redis{URL: "redis://example.com:6379", Username: "${HOST}", PasswordFile: "/run/credentials/pw"}
	if diff := cmp.Diff(want, c.Redis); diff != "" {
		t.Error(diff)
	}
	if h := c.HTTP; h.TokenFile != "/run/credentials/token" || h.TLS.CertFile != "/example.com.pem" || h.TLS.KeyFile != "/run/credentials/key" {
		t.Errorf("http %+v, %+v", h, h.TLS)
	}
	if dsn, _ := c.Databases["main"].DSN(); dsn != "$HOST ${HOST} example.com" {
		t.Errorf("dsn %q", dsn)
	}
}

// TestColonWithoutASpaceIsAPartOfATextInAList checks lists inside of braces, because the parser itself would treat every colon there as the
// colon of a key.
func TestColonWithoutASpaceIsAPartOfATextInAList(t *testing.T) {
	c, err := read(t, "redis: {cluster: [10.0.0.1:7000, h-2.example:7001 , 10.0.0.3:20]}\nhttp: {listen: 127.0.0.1:9747}\n"+
		"stores: {b: {sentinel: {master: m, addresses: [h:1]}}}\n"+
		"jobs: [{name: a, schedule: \"@hourly\", command: [echo, a:b:c, redis://a:1/0, 1:2, \"x:y\", true:false]}]\n", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"10.0.0.1:7000", "h-2.example:7001", "10.0.0.3:20"}, c.Redis.Cluster); diff != "" {
		t.Error(diff)
	}
	if got := strings.Join(c.Jobs[0].Command, " "); got != "echo a:b:c redis://a:1/0 1:2 x:y true:false" {
		t.Errorf("the command is %q", got)
	}
	if got := c.Stores["b"].Sentinel.Addresses; len(got) != 1 || got[0] != "h:1" {
		t.Errorf("the sentinels are %q", got)
	}
}

// TestByteOrderMarkIsSkipped checks the mark that editors on Windows write at the beginning of a file in UTF-8. The mark must not become a
// part of a key, a password or a variable.
func TestByteOrderMarkIsSkipped(t *testing.T) {
	c, err := read(t, "\ufeffredis: {url: \"redis://h\", password_file: pw}\n", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, "pw", "\ufeff"+planted+"\r\n")
	if password, err := c.Redis.Password(); err != nil || password != planted {
		t.Errorf("the password is %q (%v)", password, err)
	}
	if _, err := read(t, "\xff\xfen\x00", nil, nil); err == nil || !strings.Contains(err.Error(), "UTF-16") {
		t.Errorf("a file in UTF-16: %v", err)
	}
	write(t, "baton.yaml", "\ufeffredis:\n  url: redis://h:7\njobs:\n  - schedule: @hourly\n")
	if c, err := ReadLock(Input{Path: "baton.yaml", Env: lookup(nil), Flags: lookup(nil)}); err != nil || c.Redis.URL != "redis://h:7" {
		t.Errorf("the lock of a broken file is in %q (%v)", c.Redis.URL, err)
	}
}

func TestFileThatCannotBeReadIsNamed(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(filepath.Join(dir, "none.yaml"), nil)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "; to write one: baton config init ") {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Load(dir, nil); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("directory: %v", err)
	}
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, []byte(strings.Repeat("#\n", maxFile)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(big, nil); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("big file: %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range []string{good, full, "", "a", "- a", "jobs: [*a]", "&a {b: *a}", "<<: {a: b}", "? x\n: y", "redis: {url: ${X}}", "{", "a: [", "\"\\", "!!x y", ": x", "null: 1",
		"redis: {sentinel: {" + sentinels + ", password: $${X}}, database: 1, tls: {}}", "redis: {cluster: [\"a:1\"], tls: {ca_file: /c}}",
		"redis: {quorum: [\"redis://a\", \"unix://u:p@/s?db=1\", \"rediss://c\"]}", "node: {priority: 007, candidate: false}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parse("f.yaml", []byte(text), lookup(nil))
		c = c.WithDefaults()
		if errors.Join(err, c.Validate(Checks{})) != nil {
			return
		}
		// A valid configuration can be printed, and the printed text can be read back.
		again, err := parse("f.yaml", Encode(c), lookup(nil))
		if err != nil {
			t.Fatalf("%v\n%s", err, Encode(c))
		}
		if diff := cmp.Diff(string(Encode(c)), string(Encode(again))); diff != "" {
			t.Fatal(diff)
		}
	})
}
