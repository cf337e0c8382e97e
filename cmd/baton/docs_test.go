package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(text)
	}
	return all
}

func TestEveryCommandHasAManualPage(t *testing.T) {
	c := newCLI(t)
	c.env["SOURCE_DATE_EPOCH"] = "1790000000"
	c.want(exitOK, "", "", "docs", "man", "man")
	pages := readAll(t, "man")
	for _, cmd := range documented(newRootCommand(env{})) {
		page := pages[pageName(cmd)+".1"]
		delete(pages, pageName(cmd)+".1")
		if !strings.Contains(page, ".SH NAME\n"+roffText(pageName(cmd))+` \- `) || !strings.HasPrefix(page, ".TH ") || !strings.Contains(page, `"2026-09-21"`) {
			t.Errorf("%s: the page begins with\n%.200s", cmd.CommandPath(), page)
		}
		eachLine(t, cmd.CommandPath(), page)
	}
	page := pages["baton.yaml.5"]
	eachLine(t, "baton.yaml", page)
	if len(pages) != 1 || !strings.Contains(page, `lock_key:`) || !strings.Contains(page, `dead_letters:`) {
		t.Errorf("what else: %d pages, and of the file\n%s", len(pages), page)
	}
}

// eachLine wants no line that is taken for a macro by accident: man(1) would leave it out.
func eachLine(t *testing.T, name, page string) {
	t.Helper()
	macro := regexp.MustCompile(`^\.(TH "[^"]+" "[15]" .*|nh|ad l|SH [A-Z ]+|PP|TP|RS 4|RE|nf|fi)$`)
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !macro.MatchString(line) {
			t.Errorf("%s: %q would not be shown", name, line)
		}
	}
}

func TestPagesHaveTheDateOfTheSource(t *testing.T) {
	c := newCLI(t)
	c.env["SOURCE_DATE_EPOCH"] = "yesterday"
	c.want(exitUsage, "", "baton: SOURCE_DATE_EPOCH is \"yesterday\": want seconds since 1970\n", "docs", "man", "man")
	c.want(exitUsage, "", "baton: baton docs needs man or markdown\nsee baton docs --help\n", "docs")
}

// What the documentation says of the commands is what their help says.
func TestReferenceIsWhatTheCommandsSay(t *testing.T) {
	reference, err := filepath.Abs("../../docs/reference")
	if err != nil {
		t.Fatal(err)
	}
	c := newCLI(t)
	c.want(exitOK, "", "", "docs", "markdown", "now")
	for name, want := range readAll(t, "now") {
		is, err := os.ReadFile(filepath.Join(reference, name))
		if err != nil || string(is) != want {
			t.Errorf("docs/reference/%s is out of date (%v): go run ./cmd/baton docs markdown docs/reference", name, err)
		}
	}
}
