package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/doctor"
	"baton/internal/testsupport"
)

// quiet reports whether doctor has written only lines about slow answers to standard error.
func quiet(stderr string) bool {
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "checking ") {
			return false
		}
	}
	return true
}

func TestTheDoctorsVerdictIsItsExitCode(t *testing.T) {
	c := newCLI(t)
	sound := testsupport.StartRedis(t, testsupport.RedisAOF())
	db := testsupport.SQLite(t)
	db.Exec(t, "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)")
	configure := func(redis, table string) {
		t.Helper()
		c.file("baton.yaml", `
redis: {url: "`+redis+`"}
election: {ttl: 60s} # whose limits the answers of a busy machine keep
databases: {main: {driver: sqlite, dsn: "`+db.DSN+`"}}
jobs:
  - name: users
    schedule: "@every 5s"
    flush:
      from: {type: hashes, key: "user:<id>", changed: "changed:user"}
      to: {database: main, table: `+table+`, key: [id]}
`)
	}
	c.env["BATON_CONFIG"] = "baton.yaml"
	configure(sound.URL(), "users")
	got := c.run("doctor")
	// The place of a test's directory may be a finding by itself.
	if !strings.Contains(got.stdout, " lies ") && got.code != cmdline.ExitOK || !quiet(got.stderr) || !strings.Contains(got.stdout, `job "users"`) {
		t.Errorf("all is well: %+v", got)
	}

	configure(testsupport.StartRedis(t).URL(), "userz")
	got = c.run("doctor")
	if got.code != cmdline.ExitFailure || !quiet(got.stderr) || !strings.Contains(got.stdout, "it keeps nothing on disk") || !strings.Contains(got.stdout, "\n") {
		t.Errorf("a Redis that forgets: %+v", got)
	}
	// The width of the terminal may break the sentence anywhere.
	if said := strings.Join(strings.Fields(got.stdout), " "); !strings.Contains(said, "did you mean users?") || !strings.Contains(said, "→ CONFIG SET appendonly yes") {
		t.Errorf("the table or a remedy is missing: %+v", got)
	}
	var d struct {
		Errors, Warnings int
		Findings         []struct{ Severity, Subject, What, Consequence, Remedy string }
	}
	got = c.run("doctor", "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || got.code != cmdline.ExitFailure || d.Errors < 2 || len(d.Findings) < d.Errors+d.Warnings {
		t.Errorf("as JSON: %v, %+v", err, got)
	}
	if i := slices.IndexFunc(d.Findings, func(f struct{ Severity, Subject, What, Consequence, Remedy string }) bool {
		return f.Severity == "error" && f.Subject == `job "users"`
	}); i < 0 {
		t.Errorf("%+v", d.Findings)
	}

	c.file("baton.yaml", "redis: {url: x}\n")
	if got := c.run("doctor"); got.code != cmdline.ExitUsage || got.stdout != "" {
		t.Errorf("a configuration that cannot be used: %+v", got)
	}
}

func TestTheDoctorsTableKeepsToTheTerminal(t *testing.T) {
	d := doctor.ReportOf([]doctor.Finding{
		{Severity: doctor.SeverityError, Subject: `database "main"`, What: strings.Repeat("what was found ", 20), Consequence: strings.Repeat("what is lost ", 20), Remedy: strings.Repeat("what to do ", 20)},
		{Severity: doctor.SeverityOK, Subject: "redis", What: "it answers"},
	})
	for _, width := range []int{30, 60, 80, 120, 300} {
		var b strings.Builder
		if err := printReport(&b, d, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("at %d columns a line has %d: %q", width, n, line)
			}
		}
		if !strings.Contains(b.String(), "1 error, 0 warnings\n") || strings.Count(b.String(), "what to") < 5 {
			t.Errorf("at %d columns:\n%s", width, b.String())
		}
	}
}

func TestTheDoctorTellsWhatItWaitsFor(t *testing.T) {
	c := newCLI(t)
	r := testsupport.StartRedis(t)
	p := r.Proxy()
	p.Hang()
	c.env["BATON_REDIS"] = r.URLThrough(p)
	c.env["BATON_TTL"] = "4s"
	got := c.run("doctor")
	if got.code != cmdline.ExitFailure || !strings.Contains(got.stderr, "checking redis ...\n") || strings.Contains(got.stderr, "host") || !strings.Contains(got.stdout, "it does not answer") {
		t.Errorf("%+v", got)
	}
}

func TestTheDoctorLooksAtTheUnitThatRunsThisConfiguration(t *testing.T) {
	c := newCLI(t)
	c.file("reports.yaml", "redis: {url: \"redis://127.0.0.1:1\"}\n")
	for unit, args := range map[string][]string{
		"baton.service":         nil,
		"baton@reports.service": {"--unit", "baton@reports"},
		"other.service":         {"--unit=other.service"},
	} {
		got := c.run(append([]string{"doctor", "--config", "reports.yaml"}, args...)...)
		if !strings.Contains(got.stdout, "unit "+unit+" ") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
