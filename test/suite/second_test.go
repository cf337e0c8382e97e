package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var rerecord = flag.Bool("record", false, "write the events of testdata/events anew")

// recording is a run of go test -json over a package of testdata.
type recording struct {
	name string
	pkg  string
	race bool
	args []string
	want []string // the tests that get a second try
}

var recordings = []recording{
	{name: "ways", pkg: "ways", want: []string{"TestHasSubtestsThatWait", "TestLogsAndWaits", "TestTellsInACleanup", "TestWaits"}},
	{name: "leaks", pkg: "leaks"},
	{name: "panics", pkg: "panics"},
	{name: "exits", pkg: "exits"},
	{name: "timesout", pkg: "timesout", args: []string{"-timeout=1s"}},
	{name: "unbuilt", pkg: "unbuilt"},
	{name: "races", pkg: "races", race: true},
	{name: "calm", pkg: "races", race: true, args: []string{"-run=^TestWaits$"}, want: []string{"TestWaits"}},
}

func (r recording) events(t *testing.T) []byte {
	name := filepath.Join("testdata", "events", r.name+".json")
	if *rerecord {
		r.write(t, name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (r recording) write(t *testing.T, name string) {
	args := append([]string{"test", "-json", "-count=1"}, r.args...)
	if r.race {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./testdata/"+r.pkg)...)
	cmd.Stderr = os.Stderr
	if r.race {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		t.Fatalf("go test of %s: %v, want a failure", r.pkg, err)
	}
	var kept bytes.Buffer
	for line := range bytes.Lines(directories.ReplaceAll(out, []byte("$1"))) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		kept.Write(append(line, '\n'))
	}
	if err := os.WriteFile(name, kept.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// directories are those of this machine in a trace.
var directories = regexp.MustCompile(`(?:/[\w.@-]+)+/([\w.-]+\.(?:go|s):\d+)`)

func TestOnlyATestThatJustWaitedGetsASecondTry(t *testing.T) {
	for _, r := range recordings {
		got := newRecord(r.race)
		for line := range bytes.Lines(r.events(t)) {
			got.event(line)
		}
		var names []string
		for _, c := range got.judge.candidates() {
			names = append(names, c.name)
		}
		if !slices.Equal(names, r.want) {
			t.Errorf("%s: a second try for %q, want %q", r.name, names, r.want)
		}
		if got.green() {
			t.Errorf("%s is green", r.name)
		}
	}
}

// TestASecondTryHidesNothing runs the whole suite over tests that fail in chosen ways.
func TestASecondTryHidesNothing(t *testing.T) {
	program := filepath.Join(t.TempDir(), "suite")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the suite: %v\n%s", err, out)
	}
	const flaky, again, red = "\nflaky: ", "\na declared wait ran out; once more", "\nred, "
	for _, c := range []struct {
		broken string
		code   int
		said   []string
		unsaid []string
	}{
		{"TestFlaky1 TestFlaky2", 0, []string{flaky, again, "| ", "waited a minute in vain for rain", "scripts/under-load go test -count=20 -failfast -run '^TestFlaky2$' ./test/suite/testdata/tries\n"}, []string{red}},
		{"TestFlaky1 TestFlaky2 TestFlaky3", 1, []string{red, "-run '^TestFlaky1$'", "-run '^TestFlaky3$'", "In 3 tests"}, []string{flaky, again}},
		{"TestDry", 1, []string{again, red, "-run '^TestDry$'"}, []string{flaky}},
		{"TestFlaky1 TestAsserts", 1, []string{flaky, again, red, "  go test -count=1 -run '^TestAsserts$'"}, []string{"  go test -count=1 -run '^TestFlaky1$'"}},
	} {
		cmd := exec.Command(program, "quick", "./test/suite/testdata/tries")
		cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), "BATON_TRIES="+c.broken, "BATON_TRIED="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatalf("run the suite: %v", err)
		}
		if got := cmd.ProcessState.ExitCode(); got != c.code {
			t.Errorf("%q broken: exit code %d, want %d\n%s", c.broken, got, c.code, out)
		}
		for _, text := range c.said {
			if !bytes.Contains(out, []byte(text)) {
				t.Errorf("%q broken: the suite does not say %q:\n%s", c.broken, text, out)
			}
		}
		for _, text := range c.unsaid {
			if bytes.Contains(out, []byte(text)) {
				t.Errorf("%q broken: the suite says %q:\n%s", c.broken, text, out)
			}
		}
	}
}
