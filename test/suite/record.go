package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const slowest = 10 // number of the slowest tests that the summary names

// event is one line of go test -json; see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64 // seconds
	Output  string
	Key     string // key of an attribute
	Value   string
}

// test is a top-level test or, with an empty name, a whole package.
type test struct{ pkg, name string }

// record collects the results from the events of a run. Several goroutines may use it.
type record struct {
	mu       sync.Mutex
	expected int // number of packages
	tests    int
	subtests int
	skipped  int
	race     bool // whether the race detector is on
	current  map[string]string
	took     map[test]time.Duration
	red      []test
	done     map[string]bool   // packages that have ended
	flawed   map[string]bool   // packages with a race, or a test that failed before the race detector broke
	broken   map[string][]test // tests that the broken race detector has ended, by package
	judge    *judge
	flaky    []test // tests that failed first, and passed when tried again
}

func newRecord(race bool) *record {
	return &record{race: race, current: map[string]string{}, took: map[test]time.Duration{},
		done: map[string]bool{}, flawed: map[string]bool{}, broken: map[string][]test{}, judge: newJudge()}
}

// event records one line. If a line is not JSON, only gotestsum shows it.
func (r *record) event(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Package == "" {
		return
	}
	name, _, sub := strings.Cut(e.Test, "/")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.judge.event(e)
	switch e.Action {
	case "output":
		if strings.Contains(e.Output, foundRace) {
			r.flawed[e.Package] = true
		}
		if r.race && strings.Contains(e.Output, brokenDetector) {
			r.broken[e.Package] = []test{}
		}
	case "start":
		r.current[e.Package] = ""
	case "run":
		r.current[e.Package] = name
	case "pass", "fail", "skip":
		if _, broke := r.broken[e.Package]; e.Action == "fail" && !broke {
			r.flawed[e.Package] = true
		}
		r.end(e, name, sub)
	}
}

func (r *record) end(e event, name string, sub bool) {
	switch {
	case sub:
		r.subtests++
		return
	case name == "":
		r.done[e.Package] = true
		delete(r.current, e.Package)
	default:
		r.tests++
		if e.Action == "skip" {
			r.skipped++
		}
	}
	t := test{e.Package, name}
	r.took[t] = time.Duration(e.Elapsed * float64(time.Second))
	switch fell, broke := r.broken[t.pkg]; {
	case e.Action != "fail":
	case broke:
		r.broken[t.pkg] = append(fell, t)
	default:
		r.red = append(r.red, t)
	}
}

// brokenDetector is printed by the race detector when one of its own checks fails. It then ends the process. This sometimes happens while a
// test runs in a bubble of testing/synctest (https://go.dev/issue/78156), and it is not a fault of the test.
const brokenDetector, foundRace = "ThreadSanitizer: CHECK failed", "WARNING: DATA RACE"

// again removes the results of packages whose race detector broke, unless the detector had found a race or a test had failed before. It
// returns these packages, and reports whether all others passed.
func (r *record) again(packages []string) (broken []string, passed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	passed = true
	for _, pkg := range packages {
		switch fell := r.broken[pkg]; {
		case len(fell) > 0 && !r.flawed[pkg]:
			broken = append(broken, pkg)
			delete(r.broken, pkg)
			delete(r.done, pkg)
		case len(fell) > 0 || !r.done[pkg] || r.flawed[pkg]:
			passed = false
		}
	}
	return broken, passed
}

// progress returns a line that says which packages have ended and which are running.
func (r *record) progress(since time.Duration) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var under []string
	for _, pkg := range slices.Sorted(maps.Keys(r.current)) {
		if name := r.current[pkg]; name != "" {
			under = append(under, short(pkg)+" "+name)
		}
	}
	what := "building"
	if len(under) > 0 {
		what = "under way: " + strings.Join(under, ", ")
	}
	return fmt.Sprintf("[%s] %d of %d packages, %d tests; %s", since.Round(time.Second), len(r.done), r.expected, r.tests, what)
}

// print prints the summary.
func (r *record) print(w io.Writer, wall, cpu time.Duration, interrupted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(w, "\n%d packages, %d tests with %d subtests, %d skipped; %s, %s of processor time\n",
		len(r.done), r.tests, r.subtests, r.skipped, wall.Round(time.Second), cpu.Round(time.Second))
	if len(r.done) < r.expected {
		fmt.Fprintf(w, "%d packages were not run to their end\n", r.expected-len(r.done))
	}
	fmt.Fprintln(w, "\nslowest:")
	for i, t := range r.slow() {
		if i == slowest {
			break
		}
		fmt.Fprintf(w, "  %6.1fs  %s %s\n", r.took[t].Seconds(), short(t.pkg), t.name)
	}
	if interrupted {
		return // interrupted tests look as if they had failed
	}
	r.printFlaky(w)
	red := r.stillRed()
	if len(red) > 0 {
		fmt.Fprintln(w, "\nred, and how to run just that:")
	}
	for _, t := range red {
		if command := r.commandOf(t, red); command != "" {
			fmt.Fprintln(w, "  "+command)
		}
	}
	if waited := r.judge.candidates(); len(waited) > mostFlaky {
		fmt.Fprintf(w, "\nIn %d tests a declared wait ran out. More than %d in one run get no second try.\n", len(waited), mostFlaky)
	}
}

// slow returns the tests, the slowest first.
func (r *record) slow() []test {
	tests := slices.DeleteFunc(slices.Collect(maps.Keys(r.took)), func(t test) bool { return t.name == "" })
	slices.SortFunc(tests, func(a, b test) int {
		return cmp.Or(cmp.Compare(r.took[b], r.took[a]), cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name))
	})
	return tests
}

// commandOf returns the command that runs one failed test, or a package that failed in another way. It returns "" for a package if one of
// its tests is named.
func (r *record) commandOf(t test, red []test) string {
	if t.name == "" && slices.ContainsFunc(red, func(o test) bool { return o.pkg == t.pkg && o.name != "" }) {
		return ""
	}
	return "go test -count=1 " + r.argumentsOf(t)
}

// argumentsOf returns the arguments of go test that run a test or a package.
func (r *record) argumentsOf(t test) string {
	var arguments []string
	if r.race {
		arguments = append(arguments, "-race")
	}
	if t.name != "" {
		arguments = append(arguments, "-run", "'^"+t.name+"$'")
	}
	return strings.Join(append(arguments, "./"+short(t.pkg)), " ")
}

// short returns an import path without the path of the module.
func short(pkg string) string {
	_, rest, _ := strings.Cut(pkg, "/")
	return rest
}
