package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A test that a panic of another one has ended is red, too.
func TestATestThatDoesNotEndIsRed(t *testing.T) {
	r := &result{}
	events := `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"run","Package":"p","Test":"TestC"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}
`
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	if got := r.String(); got != "2 of 3 red" || strings.Join(r.red, ", ") != "p TestB, p TestC" {
		t.Errorf("%s: %q", got, r.red)
	}
}

func TestATestThatIsRedIsCountedOnce(t *testing.T) {
	r := &result{}
	events := `{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB/sub"}
{"Action":"fail","Package":"p","Test":"TestB/other"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"fail","Package":"p"}
no JSON
{"Action":"fail","Package":"does/not/compile"}
`
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.red, ", "); r.passed != 1 || r.skipped != 1 || got != "p TestB, does/not/compile" {
		t.Errorf("%d passed, %d skipped, red: %s", r.passed, r.skipped, got)
	}
	if got := r.String(); got != "2 of 3 red" {
		t.Error(got)
	}
}

// A run of one stand leaves the rows of the others, and replaces those of an older version of a series.
func TestARunReplacesTheRowsOfItsServers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"versions.md", "versions.zh-CN.md"} {
		old := &table{rows: []*line{
			{server: "Redis 8.0.2", date: "2026-01-01", results: map[string]*result{"lock": {passed: 1}}},
			{server: "PostgreSQL 17.11", date: "2026-01-01", results: map[string]*result{"sinks": {passed: 2}}},
			{server: "Redis 7.0.15", date: "2026-01-01", results: map[string]*result{"lock": {passed: 3}}},
		}}
		page := "# " + name + "\n\n" + begin + old.text() + end + "\nafter\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := &table{rows: []*line{
		{server: "Redis 8.0.6", date: "2026-02-02", results: map[string]*result{"lock": {passed: 9, red: []string{"p TestX"}}}},
		{server: "PostgreSQL 17.12", date: "2026-02-02", results: map[string]*result{"sinks": {passed: 8}}},
	}}
	if err := now.write(dir); err != nil {
		t.Fatal(err)
	}
	want := "```text\n" + `server            lock         ledger  preflight  sources  capture  sinks    crashes  poison  date
PostgreSQL 17.12  -            -       -          -        -        8 green  -        -       2026-02-02
Redis 7.0.15      3 green      -       -          -        -        -        -        -       2026-01-01
Redis 8.0.6       1 of 10 red  -       -          -        -        -        -        -       2026-02-02
` + "```\n\nafter\n"
	for _, name := range []string{"versions.md", "versions.zh-CN.md"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != "# "+name+"\n\n"+want {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}
