package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one problem of the configuration, with its place and the remedy.
type Problem struct {
	// Source is the file, the flag or the environment variable that contains the value. It is "" if the value is missing everywhere.
	Source string `json:"source,omitempty"`
	// Line and Column begin at 1. They are zero if the value is not in a file.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Path is the value's place in the configuration, for example jobs[1].schedule.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

// String returns the problem as one line. The line begins with the problem's place, in the format that editors parse.
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

// Problems is the error of a configuration that cannot be used. It contains at least one problem, and is sorted by line.
type Problems []Problem

// Error returns one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// err returns ps as a sorted error. It returns nil if ps is empty.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps.Sorted()
}

// Sorted returns the problems sorted by line and without duplicates. It also sorts ps itself.
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

// position is the place of a value: the line and column in a file, a flag, or an environment variable.
type position struct {
	source       string
	line, column int
}

// Problem returns a Problem of a value, with the value's place. If the value is missing, it uses the place of the parent.
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

// parent removes the last step of a path: jobs[1].name → jobs[1] → jobs → "".
func parent(path string) string {
	i := strings.LastIndexAny(path, ".[")
	if i < 0 {
		return ""
	}
	return path[:i]
}
