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

// plan is a choice of packages, together with the way to run them.
type plan struct {
	chosen  func(pkg string) bool
	race    bool
	skip    string        // a regular expression for tests that are not run
	timeout time.Duration // time limit for one package
	// live shows the logs of tests while the tests run. It is for tests that take many minutes.
	live bool
	env  []string
}

// plans maps names to plans. Each plan compiles every package only once. So "quick" has no race detector, because with it for some packages
// the drivers of all databases would be compiled twice. CI runs "race" instead of "quick".
var plans = map[string]plan{
	"quick": {chosen: not(long), skip: onlyLong, timeout: 20 * time.Minute}, // long enough for a busy machine
	"race":  {chosen: not(long), race: true, skip: onlyLong, timeout: 20 * time.Minute},
	"long":  {chosen: either(long, partly), race: true, timeout: 40 * time.Minute, live: true},
	// The plan "race" runs a sample of the matrix. With the race detector the whole matrix would take twice as long.
	"crash": {chosen: crash, timeout: 60 * time.Minute, env: []string{"CRASH=all"}},
}

// long reports whether a package is not in the usual plans. Some of these packages take minutes by their nature: random faults under
// traffic, a thousand nodes, repeated failovers. Few changes affect the others, which test the page, the alerts, the tests' own tools, the
// files of a release, and the clients. They need a browser, Prometheus' own tool, a hundred servers, an image, or a program in another
// language.
func long(pkg string) bool {
	return in(pkg, "test/chaos", "test/linear", "test/scale", "test/slots", "test/nodes",
		"test/browser", "test/monitoring", "test/memory", "test/clients", "test/release", "internal/testsupport")
}

// partly reports whether the usual plans run a package without the tests that onlyLong matches.
func partly(pkg string) bool { return in(pkg, "test/docs", "test/upgrade") }

// crash reports whether a package takes a sample unless CRASH=all.
func crash(pkg string) bool { return in(pkg, "test/crash") }

// onlyLong matches the tests that follow the documentation with servers and daemons, and the upgrade with a database server. The rest of
// test/docs only reads the pages: links, configurations, names, translations. The rest of test/upgrade uses SQLite.
const onlyLong = "^(TestEveryBlockIsRunOrChecked|TestTheExamplesOfEverySourceReachTheirTables|" +
	"TestTutorialToTheLetter|TestReadmesExampleToTheLetter|TestAdoptToTheLetter|TestAnOldAndANewNodeLeadInTurnOnEveryServer)$"

func not(f func(string) bool) func(string) bool { return func(pkg string) bool { return !f(pkg) } }

func either(a, b func(string) bool) func(string) bool {
	return func(pkg string) bool { return a(pkg) || b(pkg) }
}

// in reports whether pkg is one of dirs, or below one of dirs.
func in(pkg string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") })
}

// slow lists the packages that take longest, the slowest first. They begin first, because otherwise the run could end with one running
// package while the other processors are idle.
var slow = []string{
	"test/slots", "test/chaos", "test/linear", "internal/flush/sql", "internal/flush/source", "internal/daemon", "cmd/baton", "internal/redislock",
	"internal/flush/verify", "pkg/baton", "test/clients", "test/release", "internal/quorum", "internal/status", "test/docs", "test/crash", "test/process", "test/nodes", "internal/job", "test/scale", "test/browser", "internal/demo",
	"internal/testsupport", "test/poison", "test/upgrade", "test/monitoring",
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
	only     string   // the only test of them to run; all if empty
}

// packages returns the plan's packages that match the patterns. Without patterns it returns all of them.
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

// relative returns a package's directory in its module.
func relative(module, pkg string) string {
	if pkg == module {
		return "."
	}
	return path.Clean(strings.TrimPrefix(pkg, module+"/"))
}
