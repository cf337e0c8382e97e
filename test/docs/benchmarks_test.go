package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every figure in the tables of docs/benchmarks.md was measured: bench/results.md has it, in the part of the same heading.
func TestFiguresOfBenchmarksAreResults(t *testing.T) {
	t.Parallel()
	summary, results := parts(t, "docs/benchmarks.md"), parts(t, "bench/results.md")
	figure := regexp.MustCompile(`\d[\d,]*(?:\.\d+)?`)
	figures := func(text string) []string {
		var all []string
		for _, f := range figure.FindAllString(text, -1) {
			all = append(all, strings.ReplaceAll(strings.TrimRight(f, ","), ",", ""))
		}
		return all
	}
	compared := 0
	for title, text := range summary {
		measured := figures(results[title])
		for _, row := range regexp.MustCompile(`(?m)^\| .*$`).FindAllString(text, -1) {
			for _, f := range figures(row) {
				compared++
				if !slices.Contains(measured, f) {
					t.Errorf("%s: bench/results.md has no %s, which is in the row %s", title, f, row)
				}
			}
		}
	}
	if compared < 200 {
		t.Errorf("compared only %d figures", compared)
	}
}

// parts returns the text below each heading of the second level.
func parts(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		title, rest, _ := strings.Cut(part, "\n")
		all[title] = rest
	}
	return all
}
