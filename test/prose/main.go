// Command prose counts the sentences that a tired reader has to read twice. For each package it counts the sentences in comments and in
// texts for people (errors, log messages, help). For each page of the docs it counts the sentences of the page.
//
//	go run ./test/prose [-show N] [-check] [PATH…]
//
// The marks find a manner of writing, not every bad sentence, and some marked sentences are right. Vale (`make lint`) names each place that
// must change; this command says how many such sentences there are.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	show := flag.Int("show", 0, "print this many marked sentences of each package and page")
	check := flag.Bool("check", false, "fail if too many are marked, or one is too long")
	flag.Parse()
	paths := flag.Args()
	if len(paths) == 0 {
		paths = []string{"cmd", "internal", "pkg", "docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	}
	b, err := read(paths)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
	b.print(os.Stdout, *show)
	if wrong := b.wrong(); *check && len(wrong) > 0 {
		fmt.Fprintln(os.Stderr, strings.Join(wrong, "\n"))
		os.Exit(1)
	}
}

// These are the kinds of prose.
const (
	comments = "comments"
	texts    = "texts"
	docs     = "docs"
)

// place is the comments of a package, the texts of a package, or a page.
type place struct {
	kind, path string
}

type tally struct {
	sentences, marked int
	long              []string
	examples          []string
	marks             map[string]int
}

type book map[place]*tally

func read(paths []string) (book, error) {
	b := book{}
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && skipped(d.Name()):
				return fs.SkipDir
			case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				return b.code(path)
			case strings.HasSuffix(path, ".md") && !strings.Contains(path, ".zh-CN"):
				return b.page(path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// skipped reports whether a directory contains only code for tests, because the readers of such code also see the tests.
func skipped(name string) bool {
	switch name {
	case "flushtest", "sqltest", "jobtest", "redistest", "statustest", "testsupport", "testdata":
		return true
	}
	return strings.HasPrefix(name, ".") && name != "."
}

func (b book) add(p place, block, at string) {
	t := b[p]
	if t == nil {
		t = &tally{marks: map[string]int{}}
		b[p] = t
	}
	for _, s := range sentences(block) {
		t.sentences++
		if found := marksOf(s); len(found) > 0 {
			t.marked++
			t.examples = append(t.examples, at+": "+s)
			for _, m := range found {
				t.marks[m]++
			}
		}
		if len(strings.Fields(s)) > longest {
			t.long = append(t.long, at+": "+s)
		}
	}
}

// few is the number of sentences below which a percentage has no meaning.
const few = 10

func (b book) print(w io.Writer, show int) {
	for _, kind := range []string{comments, texts, docs} {
		var all, marked, long int
		for _, p := range b.sorted(kind) {
			t := b[p]
			all, marked, long = all+t.sentences, marked+t.marked, long+len(t.long)
			if t.sentences < few || t.marked == 0 && show == 0 {
				continue
			}
			fmt.Fprintf(w, "%5.1f %%  %4d of %5d  %3d over %d words  %s %s %s\n",
				percent(t.marked, t.sentences), t.marked, t.sentences, len(t.long), longest, p.path, kind, most(t.marks))
			for _, s := range t.examples[:min(show, len(t.examples))] {
				fmt.Fprintln(w, "           ", s)
			}
			for _, s := range t.long[:min(show, len(t.long))] {
				fmt.Fprintln(w, "       long ", s)
			}
		}
		if all > 0 {
			fmt.Fprintf(w, "%5.1f %%  %d of %d sentences, %d over %d words: all %s\n\n", percent(marked, all), marked, all, long, longest, kind)
		}
	}
}

func (b book) sorted(kind string) []place {
	var list []place
	for p := range b {
		if p.kind == kind {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(x, y place) int {
		return cmp.Or(cmp.Compare(b[y].marked, b[x].marked), cmp.Compare(x.path, y.path))
	})
	return list
}

func most(marks map[string]int) string {
	names := slices.Sorted(maps.Keys(marks))
	slices.SortStableFunc(names, func(x, y string) int { return cmp.Compare(marks[y], marks[x]) })
	var out []string
	for _, n := range names[:min(3, len(names))] {
		out = append(out, fmt.Sprintf("%d %s", marks[n], n))
	}
	return strings.Join(out, ", ")
}

func percent(part, all int) float64 { return 100 * float64(part) / float64(all) }

// mostOfAll and mostOfOne are the limits of -check in percent: of all sentences of a kind, and of the sentences of one package or page.
const (
	mostOfAll = 3.0
	mostOfOne = 5.0
	enough    = 40 // sentences of one package or page; with fewer sentences, two marked ones would exceed its limit
)

// wrong lists the violations that -check reports. Vale measures the length of the sentences of docs.
func (b book) wrong() []string {
	var list []string
	for _, kind := range []string{comments, texts, docs} {
		var all, marked int
		for _, p := range b.sorted(kind) {
			t := b[p]
			all, marked = all+t.sentences, marked+t.marked
			if share := percent(t.marked, max(1, t.sentences)); t.sentences >= enough && share > mostOfOne {
				list = append(list, fmt.Sprintf("prose: %.1f %% of the %s of %s are marked, more than %.0f %%: see `go run ./test/prose -show 9 %s`",
					share, kind, p.path, mostOfOne, p.path))
			}
			if kind == comments {
				for _, s := range t.long {
					list = append(list, fmt.Sprintf("%s (more than %d words: split it)", s, longest))
				}
			}
		}
		if share := percent(marked, max(1, all)); share > mostOfAll {
			list = append(list, fmt.Sprintf("prose: %.1f %% of all %s are marked, more than %.0f %%", share, kind, mostOfAll))
		}
	}
	return list
}
