package internal_test

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// These are the limits of the product's code, in lines and files. The linter limits the length of lines.
const (
	linesOfPackage  = 4500
	filesOfPackage  = 30
	linesOfFile     = 400
	linesOfFunction = 80
)

// oversized lists packages, files and FILE:FUNCTION that are over a limit, with the reason. An entry that is within its limits again is
// also an error.
var oversized = map[string]string{}

// excess is one size over its limit.
type excess struct{ name, text string }

func (e excess) String() string { return e.name + ": " + e.text }

func TestSizesStayWithinTheirLimits(t *testing.T) {
	files := parseModule(t, "..")
	if len(files) < 300 {
		t.Fatalf("found %d files of the program: this test looks in the wrong place", len(files))
	}
	over := map[string]bool{}
	for _, e := range excesses(files) {
		if over[e.name] = true; oversized[e.name] == "" {
			t.Error(e)
		}
	}
	for name := range oversized {
		if !over[name] {
			t.Errorf("%s is within its limits: remove it from the exceptions", name)
		}
	}
}

// excesses lists the packages, files and functions over their limits. Packages that are only for tests have no limits.
func excesses(files []source) []excess {
	var all []excess
	check := func(name string, n, most int, what string) {
		if n > most {
			all = append(all, excess{name, fmt.Sprintf("%d %s, limit %d", n, what, most)})
		}
	}
	lines, count := map[string]int{}, map[string]int{}
	for _, s := range files {
		if pkg := s.pkg(); within(pkg, "internal/testsupport") || within(pkg, "test") || strings.HasSuffix(pkg, "test") {
			continue
		}
		n := s.set.File(s.file.Pos()).LineCount()
		lines[s.pkg()] += n
		count[s.pkg()]++
		check(s.name, n, linesOfFile, "lines")
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				check(s.name+":"+f.Name.Name, s.set.Position(f.End()).Line-s.set.Position(f.Pos()).Line+1, linesOfFunction, "lines")
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(lines)) {
		check(pkg, lines[pkg], linesOfPackage, "lines")
		check(pkg, count[pkg], filesOfPackage, "files")
	}
	return all
}

func TestEverySizeOverItsLimitIsNoticed(t *testing.T) {
	code := func(lines int) string { return "package p\n" + strings.Repeat("\n", lines-1) }
	function := func(lines int) string { return "package p\nfunc f() {" + strings.Repeat("\n", lines-1) + "}\n" }
	method := "package p\ntype T int\nfunc (*T) f() {" + strings.Repeat("\n", linesOfFunction) + "}\n"
	files := func(n, lines int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprintf("internal/a/%d.go", i)] = code(lines)
		}
		return all
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"within":   {map[string]string{"internal/a/a.go": function(linesOfFunction), "internal/a/b.go": code(linesOfFile)}, nil},
		"file":     {map[string]string{"internal/a/a.go": code(linesOfFile + 1)}, []string{"internal/a/a.go: 401 lines, limit 400"}},
		"function": {map[string]string{"internal/a/a.go": function(linesOfFunction + 1)}, []string{"internal/a/a.go:f: 81 lines, limit 80"}},
		"method":   {map[string]string{"internal/a/a.go": method}, []string{"internal/a/a.go:f: 81 lines, limit 80"}},
		"files":    {files(filesOfPackage+1, 1), []string{"internal/a: 31 files, limit 30"}},
		"lines":    {files(15, linesOfFile), []string{"internal/a: 6000 lines, limit 4500"}},
		"full":     {files(filesOfPackage, linesOfPackage/filesOfPackage), nil},
		"tests": {map[string]string{"internal/testsupport/a.go": code(linesOfFile + 1), "internal/job/jobtest/a.go": code(linesOfFile + 1),
			"test/slots/a.go": code(linesOfFile + 1)}, nil},
	} {
		var sources []source
		for file, code := range c.files {
			sources = append(sources, parse(t, file, code))
		}
		var got []string
		for _, e := range excesses(sources) {
			got = append(got, e.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
