package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// What can be set is in the tables of the page, and nothing else.
func TestPageOfJobsHasAllSettings(t *testing.T) {
	page, err := os.ReadFile("../../docs/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, settings, found := strings.Cut(string(page), "\n## All settings\n")
	if !found {
		t.Fatal("no such section")
	}
	tables := strings.Split(settings, "\n\n|")
	if len(tables) != 3 {
		t.Fatalf("%d tables", len(tables))
	}
	quoted := func(text string) map[string]bool {
		names := map[string]bool{}
		for _, m := range regexp.MustCompile("`[^`]+`").FindAllString(text, -1) {
			for _, name := range regexp.MustCompile(`[a-z_]+`).FindAllString(m, -1) {
				names[name] = true
			}
		}
		return names
	}
	for i, want := range [][]any{
		{Policy{}, Retry{}},
		{Job{}, Webhook{}},
		{struct {
			MaxConcurrentJobs int      `yaml:"max_concurrent_jobs"`
			History           History  `yaml:"history"`
			Notify            []Notify `yaml:"notify"`
		}{}, History{}, Notify{}, Webhook{}},
	} {
		names := quoted(tables[i])
		keys := map[string]bool{}
		for _, v := range want {
			typ := reflect.TypeOf(v)
			for f := range typ.Fields() {
				if key := keyOf(f); key != "" {
					keys[key] = true
				}
			}
		}
		for key := range keys {
			if !names[key] {
				t.Errorf("%s is not in table %d", key, i+1)
			}
		}
		// The first cell of a line names settings.
		for line := range strings.Lines(tables[i]) {
			cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
			for name := range quoted(cell) {
				if !keys[name] && name != "defaults" {
					t.Errorf("table %d has %s, which is no setting", i+1, name)
				}
			}
		}
	}
}
