package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bad has one marked sentence at each place where a reader meets one, and none that must not count.
const bad = `// Package bad says what is read ahead of its time.
//
//	nobody reads what is in code, or ` + "`" + `what is it` + "`" + `
package bad

import "errors"

type t struct {
	field int ` + "`json:\"what is it and nobody says\"`" + ` // the number of which nobody speaks here
}

//nolint:all // nobody is told what it is here
var err = errors.New("nobody has told us " + name + " what it is")

const query = "SELECT what, is FROM nobody WHERE whoever = 1"

// It is short: who is it? ` + "`nobody here is told what it is`" + ` is code to a reader.
var name string
`

const page = "# What is nobody told of here\n\nBaton writes each row once. It is what is read of it.\n\n" +
	"| nobody | is told what it is |\n\n```\nnobody is told what it is\n```\n"

func TestSentencesAreCountedWhereAReaderMeetsThem(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("bad.go", bad)
	write("bad_test.go", bad)
	write("page.md", page)
	write("page.zh-CN.md", page)
	b, err := read([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[place][2]int{
		{comments, dir}:                       {3, 2},
		{texts, dir}:                          {1, 1},
		{docs, filepath.Join(dir, "page.md")}: {2, 1},
	} {
		got := b[p]
		if got == nil || got.sentences != want[0] || got.marked != want[1] {
			t.Errorf("%s of %s: %+v; want %d sentences, %d marked", p.kind, p.path, got, want[0], want[1])
		}
		delete(b, p)
	}
	if len(b) > 0 {
		t.Errorf("counted too: %v", b)
	}
}

func TestTooMuchIsRefused(t *testing.T) {
	b := book{}
	for range enough {
		b.add(place{comments, "good"}, "Baton writes each row exactly once.", "good.go:1")
	}
	if wrong := b.wrong(); len(wrong) > 0 {
		t.Errorf("refused: %q", wrong)
	}
	b.add(place{comments, "good"}, strings.Repeat("word ", longest), "good.go:2")
	if wrong := b.wrong(); len(wrong) > 0 {
		t.Errorf("refused: %q", wrong)
	}
	b.add(place{comments, "good"}, strings.Repeat("word ", longest+1), "good.go:3")
	for range 3 {
		b.add(place{comments, "good"}, "Nobody is told what it is.", "good.go:4")
	}
	wrong := b.wrong()
	for _, part := range []string{"good.go:3", "6.7 % of the comments of good are marked", "6.7 % of all comments"} {
		if !slices.ContainsFunc(wrong, func(s string) bool { return strings.Contains(s, part) }) {
			t.Errorf("%q is not among %q", part, wrong)
		}
	}
}
