package sql

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
)

// common contains the file queries.sql, with the queries that all kinds of databases have in common.
//
//go:embed queries.sql
var common embed.FS

// Queries contains the fixed statements of one kind of database, by their names.
type Queries map[string]string

// loadQueries reads files whose sections begin with "-- name: x", and replaces the names in braces. A query in a later directory replaces
// the query of the same name in an earlier directory.
func loadQueries(fill *strings.Replacer, file string, dirs ...fs.FS) (Queries, error) {
	q := Queries{}
	for _, dir := range dirs {
		text, err := fs.ReadFile(dir, file)
		if err != nil {
			return nil, fmt.Errorf("read the embedded queries: %w", err)
		}
		name := ""
		for line := range strings.Lines(string(text)) {
			if after, ok := strings.CutPrefix(line, "-- name: "); ok {
				name = strings.TrimSpace(after)
				q[name] = ""
			} else if !strings.HasPrefix(line, "--") {
				q[name] += line
			}
		}
	}
	for name, text := range q {
		q[name] = strings.TrimSpace(fill.Replace(text))
	}
	return q, nil
}

// prefixForm matches prefixes that need no quotes under any server's case rules, and that are short enough for the longest name within 63
// bytes.
var prefixForm = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,30}$`)

// filledFS is a tree of SQL files in which the names in braces are replaced.
type filledFS struct {
	fs.FS
	fill *strings.Replacer
}

func (f filledFS) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".sql") {
		return file, err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &filledFile{File: file, text: strings.NewReader(f.fill.Replace(string(text)))}, nil
}

type filledFile struct {
	fs.File
	text *strings.Reader
}

func (f *filledFile) Read(p []byte) (int, error) { return f.text.Read(p) }
