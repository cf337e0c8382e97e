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
	race    func(pkg string) bool
	timeout time.Duration // for one package
	// live shows what the tests log while they run: for tests of many minutes.
	live bool
	env  []string
}

var plans = map[string]plan{
	"quick": {chosen: not(long), race: concurrent, timeout: 20 * time.Minute}, // for a busy machine
	"long":  {chosen: either(long, matrix), race: all, timeout: 70 * time.Minute, live: true, env: []string{"CRASH=all"}},
	// What "quick" runs without the race detector.
	"race": {chosen: not(either(long, concurrent)), race: all, timeout: 15 * time.Minute},
}

// long are the packages whose tests take minutes by their nature: faults drawn at random under
// traffic, a thousand nodes, nodes that fail over again and again; and what few changes touch,
// but a browser, Prometheus' own tool or a hundred servers prove: the page, the alerts, and the
// tests' own tools.
func long(pkg string) bool {
	return in(pkg, "test/chaos", "test/linear", "test/scale", "test/slots", "test/nodes",
		"test/browser", "test/monitoring", "test/memory", "internal/testsupport")
}

// matrix is the package whose tests take a sample unless CRASH=all.
func matrix(pkg string) bool { return in(pkg, "test/crash") }

// concurrent are the packages with goroutines of our own that share memory: there the race
// detector finds most. It doubles what a package costs; for the databases, the daemon and its
// page, which wire these together, it would be half of the whole. Theirs is in the plan "race".
func concurrent(pkg string) bool {
	return in(pkg, "internal/command", "internal/elector", "internal/flush", "internal/heartbeat",
		"internal/job", "internal/notify", "internal/quorum") && !in(pkg, "internal/flush/sql")
}

func all(string) bool { return true }

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
	"test/slots", "test/chaos", "test/linear", "internal/daemon", "internal/flush/source", "internal/redislock", "internal/flush/sql", "cmd/baton",
	"internal/quorum", "internal/status", "test/docs", "test/crash", "test/process", "test/nodes", "internal/job", "test/scale", "test/browser", "internal/demo",
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
	race     bool
	packages []string // import paths
}

// runs lists the plan's packages that match the patterns, or all: those with the race
// detector, and those without.
func (p plan) runs(ctx context.Context, patterns []string) ([]goTest, error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Module.Path}} {{.ImportPath}}{{end}}"}, patterns...)...)
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	with, without, module := goTest{race: true}, goTest{}, ""
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue
		}
		module = fields[0]
		pkg := relative(module, fields[1])
		switch {
		case !p.chosen(pkg):
		case p.race(pkg):
			with.packages = append(with.packages, fields[1])
		default:
			without.packages = append(without.packages, fields[1])
		}
	}
	slowestFirst(module, with.packages)
	slowestFirst(module, without.packages)
	runs := slices.DeleteFunc([]goTest{with, without}, func(g goTest) bool { return len(g.packages) == 0 })
	if len(runs) == 0 {
		return nil, fmt.Errorf("no package of this plan matches %s", strings.Join(patterns, " "))
	}
	return runs, nil
}

// relative is a package's directory in its module.
func relative(module, pkg string) string {
	if pkg == module {
		return "."
	}
	return path.Clean(strings.TrimPrefix(pkg, module+"/"))
}
