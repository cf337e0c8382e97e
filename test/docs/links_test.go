package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced     = regexp.MustCompile("(?ms)^ *```.*?^ *```\\s*$")
	headings   = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	markup     = regexp.MustCompile("\\[([^\\]]*)\\]\\([^)]*\\)|[`*]")
	dropped    = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// Every link of every page leads somewhere: files are there, and the headings in them.
func TestLinksLeadSomewhere(t *testing.T) {
	links := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range linkTarget.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			path := page
			if file != "" {
				path = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: a link to %s, which is not there", page, m[1])
			} else if anchor != "" && !anchors(t, path)[anchor] {
				t.Errorf("%s: a link to %s, and the page has no such heading", page, m[1])
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

// anchors are what the headings of a page are linked to by.
func anchors(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, m := range headings.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
		plain := strings.ToLower(markup.ReplaceAllString(m[1], "$1"))
		all[strings.ReplaceAll(dropped.ReplaceAllString(plain, ""), " ", "-")] = true
	}
	return all
}

// Every page of docs can be reached from the index.
func TestTheIndexLeadsToEveryPage(t *testing.T) {
	reached := map[string]bool{}
	var follow func(page string)
	follow = func(page string) {
		if reached[page] || !strings.HasSuffix(page, ".md") {
			return
		}
		reached[page] = true
		text, _ := os.ReadFile(page) // one that is not there: TestLinksLeadSomewhere
		for _, m := range linkTarget.FindAllStringSubmatch(string(text), -1) {
			file, _, _ := strings.Cut(m[1], "#")
			if file != "" && !strings.Contains(file, "://") {
				follow(filepath.Join(filepath.Dir(page), file))
			}
		}
	}
	follow(filepath.Join(root, "docs", "README.md"))
	for _, page := range pages(t) {
		if strings.Contains(page, "/docs/") && !strings.Contains(page, "/adr/") && !reached[page] {
			t.Errorf("nobody finds %s: docs/README.md does not lead there", page)
		}
	}
}
