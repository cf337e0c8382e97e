package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one fault of the configuration, with its place and the remedy.
type Problem struct {
	// Source is the file, the flag or the environment variable with the value; "" if the value is missing everywhere.
	Source string `json:"source,omitempty"`
	// Line and Column count from 1; zero outside a file.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Path is the value's place in the configuration, for example jobs[1].schedule.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

// String is the problem as one line, and begins with its place in the form that editors parse.
func (p Problem) String() string {
	var b strings.Builder
	switch {
	case p.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", p.Source, p.Line, p.Column)
	case p.Source != "":
		b.WriteString(p.Source + ": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems is the error of a configuration that cannot be used: at least one
// problem, sorted by line.
type Problems []Problem

// Error gives one line a problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// err is ps as an error: sorted, and nil if there are none.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps.Sorted()
}

// Sorted are the problems by line, each once. It sorts ps itself, too.
func (ps Problems) Sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(min(b.Line, 1), min(a.Line, 1)), // problems without a line come last
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Path, b.Path),
		)
	})
	return slices.Compact(ps)
}

// place is the place of a value: a file's line and column, or a flag, or an environment variable.
type place struct {
	source       string
	line, column int
}

// Problem makes a Problem of a value at its place. A missing value is reported at its parent's place.
func (c Config) Problem(path, message string) Problem {
	p := Problem{Path: path, Message: message}
	for at := path; at != ""; at = parent(at) {
		if pl, ok := c.places[at]; ok {
			p.Source, p.Line, p.Column = pl.source, pl.line, pl.column
			break
		}
	}
	return p
}

// parent cuts the last step off a path: jobs[1].name → jobs[1] → jobs → "".
func parent(path string) string {
	i := strings.LastIndexAny(path, ".[")
	if i < 0 {
		return ""
	}
	return path[:i]
}
