package source

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A user with the permissions that the preflight checks must be able to run each script of a stage to its end. A script that is refused in
// the middle has done only half of its work.
func TestPreflightAsksForWhatScriptsOfAStageCall(t *testing.T) {
	asked := map[string]bool{}
	for _, command := range slices.Concat(indexCommands("set"), indexCommands("zset")) {
		asked[strings.Fields(command)[0]] = true
	}
	scripts, err := filepath.Glob("staging/stage*.lua")
	if err != nil || len(scripts) < 4 {
		t.Fatalf("scripts %q, %v", scripts, err)
	}
	call := regexp.MustCompile(`redis\.p?call\((?:\w+ and )?'([A-Z]+)'(?: or '([A-Z]+)')?`)
	for _, script := range scripts {
		if filepath.Base(script) == "stage_mark.lua" {
			continue // a replay by an operator runs this, and no flush does
		}
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range call.FindAllStringSubmatch(string(text), -1) {
			for _, name := range found[1:] {
				if name != "" && !asked[name] {
					t.Errorf("%s calls %s, which the preflight does not ask for", script, name)
				}
			}
		}
	}
}

// The preflight tries one key of a pattern. The user's permissions must cover all of its keys.
func TestPreflightGrantsEveryKeyOfAPattern(t *testing.T) {
	d, err := Describe(Options{Job: "views", Type: "counters", Key: "a^:<id>:views"})
	if err != nil {
		t.Fatal(err)
	}
	p := d.Access(false, false).Keys[0]
	for word, want := range map[string][2]string{
		"K": {"a^:1:views", `a\^:*:views`},
		"R": {"a^:1:views", `a\^:*:views`},
		"S": {"{a^:1:views}:baton:stage", `{a\^:*:views}:baton:stage`},
	} {
		if got := [2]string{p.Names[word], p.Patterns[word]}; got != want {
			t.Errorf("%s: tried and granted %q, want %q", word, got, want)
		}
	}
	if p.Key != "a^:1:views" {
		t.Errorf("the place is that of %q", p.Key)
	}
}
