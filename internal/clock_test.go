package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A test that fails if an action takes longer than a limit also fails on a busy machine. So tests wait for events, and check the order or
// the number of events. The rule does not apply to times that are measured in testing/synctest, which are exact, to waits that give up
// after a minute, and to benchmarks.

// bounded maps a file to the number of upper bounds of time that the file may have, and to the reason.
var bounded = map[string]struct {
	most   int
	reason string
}{
	"internal/testsupport/stopwatch_test.go":     {1, "it tests the clock itself"},
	"test/linear/faults_test.go":                 {1, "it asks whether a fault is due"},
	"test/chaos/capture/slots_test.go":           {1, "it asks whether a slot has rested for long enough to be moved"},
	"test/process/signals_test.go":               {1, "it tries again where the second signal was late: only two signals within a second are one order"},
	"internal/redisconn/follow/presence_test.go": {2, "Redis' clock is compared with ours, and a replica must be noticed that says nothing"},
	"internal/command/command_test.go":           {1, "it asks whether a deadline is due to move"},
	"internal/demo/scene_test.go":                {1, "it asks whether a key is due to be pressed again"},
	"test/hosts/start_test.go":                   {1, "how long a boot is held up is what it tests, in a lab of its own"},

	"internal/daemon/job_test.go":          {1, owed},
	"internal/daemon/reload_again_test.go": {1, owed},
	"internal/flush/sql/close_test.go":     {2, owed},
}

// owed is the reason for bounds that should still be replaced.
const owed = "a limit of our own is far below, and still the machine decides"

// watchdogs lists the names of times after which a wait gives up.
var watchdogs = []string{"soon", "patience", "settles", "settleWithin"}

func TestNoTestHasAnUpperBoundOfTime(t *testing.T) {
	files := token.NewFileSet()
	found := map[string][]token.Position{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, otherModule := os.Stat(filepath.Join(path, "go.mod"))
			if path != ".." && (otherModule == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		for _, at := range upperBounds(file) {
			found[name] = append(found[name], files.Position(at))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range found {
		if len(at) > bounded[name].most {
			t.Errorf("%s holds something to a time at %v: wait for an event, and judge the order of events or their number", name, at)
		}
	}
	for name, b := range bounded {
		if len(found[name]) < b.most {
			t.Logf("%s has %d upper bounds of time: lower its %d among the exceptions", name, len(found[name]), b.most)
		}
	}
}

// upperBounds returns the positions of comparisons that limit the time of an action, except in fake time.
func upperBounds(file *ast.File) (found []token.Pos) {
	for _, i := range file.Imports {
		if i.Path.Value == `"testing/synctest"` {
			return nil
		}
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			found = append(found, upperBoundsOf(f)...)
		}
	}
	return found
}

func upperBoundsOf(f *ast.FuncDecl) (found []token.Pos) {
	elapsed := map[string]bool{} // the variables that contain the duration of an action
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, right := range n.Rhs { // the left side has the same number of values, or the right side is one call
				if name, ok := n.Lhs[i].(*ast.Ident); ok && tellsTime(right, elapsed) {
					elapsed[name.Name] = true
				}
			}
		case *ast.BinaryExpr:
			over := (n.Op == token.GTR || n.Op == token.GEQ) && tellsTime(n.X, elapsed) && !isWatchdog(n.Y)
			under := (n.Op == token.LSS || n.Op == token.LEQ) && tellsTime(n.Y, elapsed) && !isWatchdog(n.X)
			if over || under {
				found = append(found, n.Pos())
			}
		}
		return true
	})
	return found
}

// tellsTime reports whether an expression is the duration of an action.
func tellsTime(e ast.Expr, elapsed map[string]bool) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return elapsed[e.Name]
	case *ast.ParenExpr:
		return tellsTime(e.X, elapsed)
	case *ast.BinaryExpr:
		return (e.Op == token.SUB || e.Op == token.ADD) && (tellsTime(e.X, elapsed) || tellsTime(e.Y, elapsed))
	case *ast.CallExpr:
		s, ok := e.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		x, _ := s.X.(*ast.Ident)
		return s.Sel.Name == "Took" || s.Sel.Name == "Since" && x != nil && x.Name == "time"
	}
	return false
}

// isWatchdog reports whether a time is the limit of a wait that gives up: minutes, or one of the names in watchdogs.
func isWatchdog(e ast.Expr) (yes bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if i, ok := n.(*ast.Ident); ok && (i.Name == "Minute" || i.Name == "Hour" || slices.Contains(watchdogs, i.Name)) {
			yes = true
		}
		return true
	})
	return yes
}

func TestUpperBoundsOfTimeAreFound(t *testing.T) {
	for text, want := range map[string]int{
		`if took := time.Since(began); took > 2*time.Second {}`:           1,
		`if 2*time.Second < time.Since(began) {}`:                         1,
		`took := clock.Took() - still; if ok && took >= ttl {}`:           1,
		`if time.Since(began) > time.Minute {}`:                           0,
		`if took := time.Since(began); took > soon {}`:                    0,
		`if took := time.Since(began); took < 2*time.Second {}`:           0,
		`for time.Since(began) < ttl {}`:                                  0,
		`if n, took := count(), time.Since(a); n != 1 || took > ttl/2 {}`: 1,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a_test.go", "package a\nfunc f() {\n"+text+"\n}\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(upperBounds(file)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
