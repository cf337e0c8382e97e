package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"baton/internal/testsupport/ranout"
)

// mostFlaky limits the number of tests that get a second try. If more tests of one run fail, the cause is not one unlucky test.
const mostFlaky = 2

// judge decides by the events of a run which of its red tests get a second try. A test gets a second try only if all of its failures are
// declared waits that timed out, which package ranout marks. So every other failure is final: another assertion, a panic, a race, a leak, a
// time-out, a build.
//
// When in doubt a failure is final. For example, a log line looks like an assertion. A log line counts as an assertion after the mark, and
// in a parent test that failed without its own mark.
//
// gotestsum's --rerun-fails cannot be used, because it runs every failed test again, whatever has failed.
type judge struct {
	runs map[string]*packageRun // running packages by name
	// waited contains the tests that get a second try, with their output.
	waited map[test]string
}

// packageRun is the state of one package, as its events have shown it so far.
type packageRun struct {
	said   []byte            // output of the package itself, outside of its tests
	race   bool              // the race detector has found a race
	nodes  map[string]*node  // tests and subtests that have not passed, by their full names
	waited map[string]string // top-level tests that only declared waits have ended, with their output
}

// node is a test or a subtest.
type node struct {
	said   []byte
	mark   int // position in said of the mark of a declared wait; -1 if there is none
	failed bool
}

func newJudge() *judge {
	return &judge{runs: map[string]*packageRun{}, waited: map[test]string{}}
}

func (j *judge) event(e event) {
	if e.Action == "start" {
		j.runs[e.Package] = &packageRun{nodes: map[string]*node{}, waited: map[string]string{}}
		return
	}
	p := j.runs[e.Package]
	if p == nil {
		return // the build has failed
	}
	switch e.Action {
	case "output":
		p.output(e)
	case "attr":
		if n := p.node(e.Test); e.Key == ranout.Attribute {
			n.mark = len(n.said)
		}
	case "pass", "skip":
		delete(p.nodes, e.Test)
	case "fail":
		if e.Test != "" {
			p.fail(e.Test)
		} else if p.endedItself() {
			for name, said := range p.waited {
				j.waited[test{e.Package, name}] = said
			}
		}
	}
}

func (p *packageRun) node(name string) *node {
	n := p.nodes[name]
	if n == nil {
		n = &node{mark: -1}
		p.nodes[name] = n
	}
	return n
}

func (p *packageRun) output(e event) {
	p.race = p.race || strings.Contains(e.Output, foundRace)
	if e.Test == "" {
		p.said = append(p.said, e.Output...)
		return
	}
	n := p.node(e.Test)
	n.said = append(n.said, e.Output...)
}

// endedItself reports whether the tests ran to their end, and the package printed only that one of them failed. A process that dies does
// not print the first of these lines. A TestMain that finds a leak prints another line.
func (p *packageRun) endedItself() bool { return !p.race && ownEnd.Match(p.said) }

var ownEnd = regexp.MustCompile(`^FAIL\nFAIL\t[^\n]*\n$`)

// fail records the end of a failed test. When a top-level test ends, fail judges the whole test.
func (p *packageRun) fail(name string) {
	p.node(name).failed = true
	if strings.Contains(name, "/") {
		return
	}
	var said strings.Builder
	only := true
	for _, of := range slices.Sorted(maps.Keys(p.nodes)) {
		if of == name || strings.HasPrefix(of, name+"/") {
			said.Write(p.nodes[of].said)
			only = only && (!p.nodes[of].failed || p.onlyWaited(of))
		}
	}
	maps.DeleteFunc(p.nodes, func(of string, _ *node) bool { return of == name || strings.HasPrefix(of, name+"/") })
	if only {
		p.waited[name] = said.String()
	}
}

// onlyWaited reports whether a test failed only by its own declared wait, or by its subtests.
func (p *packageRun) onlyWaited(name string) bool {
	n := p.nodes[name]
	if n.mark >= 0 {
		return assertions(n.said[n.mark:]) == 1 // the assertion of the wait
	}
	return assertions(n.said) == 0 && slices.ContainsFunc(slices.Collect(maps.Keys(p.nodes)), func(of string) bool {
		return strings.HasPrefix(of, name+"/") && p.nodes[of].failed
	})
}

// assertions counts the lines that may be assertions: each line that package testing begins with a position in the code.
func assertions(said []byte) int { return len(place.FindAll(said, -1)) }

var place = regexp.MustCompile(`\.go:\d+: `)

// candidates returns the tests that get a second try.
func (j *judge) candidates() []test {
	return slices.SortedFunc(maps.Keys(j.waited), func(a, b test) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name))
	})
}

// secondTries returns the tests to try again, each in its own run.
func (r *record) secondTries() []goTest {
	r.mu.Lock()
	defer r.mu.Unlock()
	tests := r.judge.candidates()
	if len(tests) > mostFlaky {
		return nil
	}
	var tries []goTest
	for _, t := range tests {
		tries = append(tries, goTest{packages: []string{t.pkg}, only: t.name})
	}
	return tries
}

// passedAlone records that a test has passed when it was tried again.
func (r *record) passedAlone(t test) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flaky = append(r.flaky, t)
}

func (r *record) anyFlaky() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.flaky) > 0 }

// passed reports whether the run of one test, which has this record, was successful.
func (r *record) passed(t test) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ended := r.took[t]
	return ended && r.done[t.pkg] && len(r.red) == 0 && r.skipped == 0 && len(r.broken) == 0
}

// green reports whether all packages ran to their end, and no test or package has failed.
func (r *record) green() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.done) == r.expected && len(r.stillRed()) == 0
}

// stillRed returns the tests and packages that failed and are not flaky. A failed package counts because of its tests, if one of its tests
// has failed.
func (r *record) stillRed() []test {
	red := slices.Clone(r.red)
	for _, pkg := range slices.Sorted(maps.Keys(r.broken)) {
		red = append(red, r.broken[pkg]...)
	}
	flaky := func(t test) bool { return slices.Contains(r.flaky, t) }
	return slices.DeleteFunc(red, func(t test) bool {
		if t.name != "" {
			return flaky(t)
		}
		others := func(o test) bool { return o.pkg == t.pkg && o.name != "" && !flaky(o) }
		return slices.ContainsFunc(r.flaky, func(o test) bool { return o.pkg == t.pkg }) && !slices.ContainsFunc(red, others)
	})
}

// printFlaky prints the flaky tests, each with its first output.
func (r *record) printFlaky(w io.Writer) {
	if len(r.flaky) == 0 {
		return
	}
	fmt.Fprintln(w, "\nflaky: a declared wait ran out, and the test passed when it was run again, alone. What it said at first, and how to repeat it:")
	for _, t := range r.flaky {
		fmt.Fprintf(w, "  %s %s\n", short(t.pkg), t.name)
		for line := range strings.Lines(r.judge.waited[t]) {
			fmt.Fprint(w, "    | ", line)
		}
		fmt.Fprintf(w, "  scripts/under-load go test -count=20 -failfast %s\n", r.argumentsOf(t))
	}
}
