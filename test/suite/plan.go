package main

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
)

// plan is a choice of packages and how to run them.
type plan struct {
	chosen  func(pkg string) bool
	race    bool
	skip    string        // the tests that it leaves out: a regular expression
	timeout time.Duration // for one package
	// live shows what the tests log while they run: for tests of many minutes.
	live bool
	env  []string
}

// Each plan compiles everything once. So "quick" has no race detector: with it for some packages
// the drivers of all databases would be compiled twice. CI runs "race" in place of "quick".
var plans = map[string]plan{
	"quick": {chosen: not(long), skip: walks, timeout: 20 * time.Minute}, // for a busy machine
	"race":  {chosen: not(long), race: true, skip: walks, timeout: 20 * time.Minute},
	"long":  {chosen: either(long, sampled), race: true, timeout: 70 * time.Minute, live: true, env: []string{"CRASH=all"}},
}

// long are the packages whose tests take minutes by their nature: faults drawn at random under
// traffic, a thousand nodes, nodes that fail over again and again; and what few changes touch, but
// a browser, Prometheus' own tool, a hundred servers, an image or a program in another language
// prove: the page, the alerts, the tests' own tools, the files of a release, the clients.
func long(pkg string) bool {
	return in(pkg, "test/chaos", "test/linear", "test/scale", "test/slots", "test/nodes",
		"test/browser", "test/monitoring", "test/memory", "test/clients", "test/release", "internal/testsupport")
}

// sampled are packages that the other plans run in part: test/crash takes a sample unless CRASH=all,
// and test/docs goes without the walks.
func sampled(pkg string) bool { return in(pkg, "test/crash", "test/docs") }

// walks are the tests that follow the documentation with servers and daemons. The rest of test/docs
// reads the pages: links, configurations, names, translations.
const walks = "^(TestEveryBlockIsRunOrChecked|TestTheExamplesOfEverySourceReachTheirTables|" +
	"TestTutorialToTheLetter|TestReadmesExampleToTheLetter|TestAdoptToTheLetter)$"

func not(f func(string) bool) func(string) bool { return func(pkg string) bool { return !f(pkg) } }

func either(a, b func(string) bool) func(string) bool {
	return func(pkg string) bool { return a(pkg) || b(pkg) }
}

// in reports whether pkg is one of dirs or below one.
func in(pkg string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") })
}

// slow are the packages that take longest, the slowest first: they begin first, so that the run
// does not end with one package at work and the other processors idle.
var slow = []string{
	"test/slots", "test/chaos", "test/linear", "internal/flush/sql", "internal/flush/source", "internal/daemon", "cmd/baton", "internal/redislock",
	"internal/flush/verify", "pkg/baton", "test/clients", "test/release", "internal/quorum", "internal/status", "test/docs", "test/crash", "test/process", "test/nodes", "internal/job", "test/scale", "test/browser", "internal/demo",
	"internal/testsupport", "test/poison", "test/monitoring",
}

func slowestFirst(module string, packages []string) {
	rank := func(pkg string) int {
		if i := slices.Index(slow, relative(module, pkg)); i >= 0 {
			return i
		}
		return len(slow)
	}
	slices.SortStableFunc(packages, func(a, b string) int { return rank(a) - rank(b) })
}

// goTest is one run of go test.
type goTest struct {
	packages []string // import paths
	only     string   // the one test of them to run; all if empty
}

// packages lists the plan's packages that match the patterns, or all.
func (p plan) packages(ctx context.Context, patterns []string) ([]string, error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Module.Path}} {{.ImportPath}}{{end}}"}, patterns...)...)
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	var packages []string
	var module string
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue
		}
		module = fields[0]
		if p.chosen(relative(module, fields[1])) {
			packages = append(packages, fields[1])
		}
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("no package of this plan matches %s", strings.Join(patterns, " "))
	}
	slowestFirst(module, packages)
	return packages, nil
}

// relative is a package's directory in its module.
func relative(module, pkg string) string {
	if pkg == module {
		return "."
	}
	return path.Clean(strings.TrimPrefix(pkg, module+"/"))
}
