package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// line is a row of the table: one server.
type line struct {
	server  string
	date    string
	results map[string]*result
}

func newLine(s stand, of server, dir string) *line {
	return &line{server: of.product + " " + of.version(s.root(dir)), date: time.Now().UTC().Format(time.DateOnly),
		results: map[string]*result{}}
}

func (l *line) red() bool {
	for _, r := range l.results {
		if len(r.red) > 0 {
			return true
		}
	}
	return false
}

// cells returns the server, its results and the date.
func (l *line) cells() []string {
	cells := []string{l.server}
	for _, s := range suites {
		cells = append(cells, l.results[s.name].String())
	}
	return append(cells, l.date)
}

type table struct{ rows []*line }

func heading() []string {
	cells := []string{"server"}
	for _, s := range suites {
		cells = append(cells, s.name)
	}
	return append(cells, "date")
}

func (t *table) text() string {
	var lines [][]string
	for _, l := range t.rows {
		lines = append(lines, l.cells())
	}
	return align(append([][]string{heading()}, lines...))
}

// align formats cells in columns.
func align(lines [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range lines {
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // a strings.Builder never returns an error
	var trimmed strings.Builder
	for text := range strings.Lines(b.String()) {
		trimmed.WriteString(strings.TrimRight(text, " \n") + "\n")
	}
	return trimmed.String()
}

// begin and end surround the table, which is the first block of text on its page.
const begin, end = "```text\n", "```\n"

// write replaces the rows of the same servers in the table of the pages. The rows of other stands stay.
func (t *table) write(dir string) error {
	for _, name := range []string{"versions.md", "versions.zh-CN.md"} {
		path := filepath.Join(dir, name)
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		before, rest, ok := strings.Cut(string(page), begin)
		old, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			return fmt.Errorf("%s has no table between %q and %q", path, begin, end)
		}
		if err := os.WriteFile(path, []byte(before+begin+t.merged(old)+end+after), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// merged returns the table together with the rows of the older table for other servers. Redis 8.0.2 and 8.0.6 count as the same server, and
// so do PostgreSQL 17.11 and 17.12.
func (t *table) merged(old string) string {
	lines := [][]string{heading()}
	for _, l := range t.rows {
		lines = append(lines, l.cells())
	}
	for text := range strings.Lines(old) {
		cells := splitCells(text)
		if len(cells) != len(heading()) || cells[0] == "server" {
			continue
		}
		if !slices.ContainsFunc(lines, func(l []string) bool { return series(l[0]) == series(cells[0]) }) {
			lines = append(lines, cells)
		}
	}
	slices.SortStableFunc(lines[1:], func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return align(lines)
}

// splitCells splits a row into cells, which are separated by two or more spaces.
func splitCells(text string) (cells []string) {
	for cell := range strings.SplitSeq(strings.TrimSpace(text), "  ") {
		if cell = strings.TrimSpace(cell); cell != "" {
			cells = append(cells, cell)
		}
	}
	return cells
}

// series returns a server's name and version without the last part of the version.
func series(server string) string {
	name, version, _ := strings.Cut(server, " ")
	parts := strings.Split(version, ".")
	return name + " " + strings.Join(parts[:max(1, len(parts)-1)], ".")
}
