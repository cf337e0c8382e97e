package job

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/internal/job/plan"
	"baton/internal/job/schedule"
)

// A job's machine can be tested without a loop, a ledger or a clock.
func TestMachineAnswersEventsWithCommands(t *testing.T) {
	begin := at(t, "10:00:00")
	term := &leadership{term: Term{Owner: "me"}, began: begin, freeSince: begin}
	term.newID = func() (string, error) { return "run", nil }
	m := &machine{job: Job{Name: "flush", Schedule: mustParse(t, "@every 5s")}, leadership: term}
	event := func(clock string, do func()) []command {
		now := at(t, clock)
		m.eventContext, m.commands = eventContext{now: now, clock: now, room: 1}, nil
		do()
		return m.commands
	}
	event("10:00:00", func() { m.schedule(begin) })
	if got := m.nextWake(); !got.Equal(at(t, "10:00:05")) {
		t.Fatalf("wakes at %v", got)
	}
	if got := event("10:00:05", m.handleDue); len(got) != 0 {
		t.Errorf("before it is known what was run last: %T", got[0])
	}
	got := event("10:00:05.5", func() { m.learn(ResumeState{Last: begin}, true, false) })
	if len(got) != 1 {
		t.Fatalf("when that is known: %d commands, want one", len(got))
	}
	first, ok := got[0].(startRun)
	if !ok || !first.f.run.Slot.Equal(at(t, "10:00:05")) || first.f.run.ID != "run" {
		t.Fatalf("when that is known: %#v", got[0])
	}
	if got := event("10:00:05.6", func() { m.answered(first.f, nil) }); len(got) != 0 {
		t.Errorf("when the claim is granted: %T", got[0])
	}
	got = event("10:00:10", m.handleDue)
	if len(got) != 2 {
		t.Fatalf("while it goes on: %d commands, want two", len(got))
	}
	told, ok := got[0].(reportMissed)
	if !ok || told.missed.Reason != ReasonOverlap {
		t.Errorf("while it goes on: %#v", got[0])
	}
	if _, ok := got[1].(recordMissed); !ok {
		t.Errorf("while it goes on: %T", got[1])
	}
}

// If the number of runs has no limit, the end of a run is followed by the next run at once.
func TestMachineHasRoomWhereNothingBoundsIt(t *testing.T) {
	begin := at(t, "10:00:00")
	term := &leadership{term: Term{Owner: "me"}, began: begin, freeSince: begin}
	term.newID = func() (string, error) { return "run", nil }
	m := &machine{job: Job{Name: "flush", Schedule: mustParse(t, "@every 5s"), Overlap: plan.OverlapQueueOne}, leadership: term}
	event := func(clock string, do func()) []command {
		now := at(t, clock)
		m.eventContext, m.commands = eventContext{now: now, clock: now, room: maxRoom}, nil
		do()
		return m.commands
	}
	event("10:00:00", func() { m.schedule(begin) })
	event("10:00:00", func() { m.learn(ResumeState{Last: begin}, true, false) })
	first := event("10:00:05", m.handleDue)[0].(startRun).f
	event("10:00:05.1", func() { m.answered(first, nil) })
	event("10:00:10", m.handleDue)
	got := event("10:00:11", func() { m.settle(first, Record{}, nil, 6*time.Second, nil) })
	if !slices.ContainsFunc(got, func(c command) bool { _, starts := c.(startRun); return starts }) {
		t.Errorf("when the run has ended: %#v", got)
	}
}

// Runs that wait for their claim count, but runs that only remove a retrial do not.
func TestMachineCountsTheRunsThatOverlap(t *testing.T) {
	for n, want := range []admission{admitted, admitted, rejected, rejected} {
		m := &machine{job: Job{Overlap: plan.OverlapAllow, MaxOverlap: 2}, active: []*activeRun{{void: true}}}
		for range n {
			m.active = append(m.active, &activeRun{})
		}
		if why, got := m.slots.overlap(m, &dueRun{}); got != want || (why == ReasonOverlap) != (want == rejected) {
			t.Errorf("beside %d: got %v, %q, want %v", n, got, why, want)
		}
	}
}

// The decisions of a machine depend only on its state and the event: it reads no clock and does not wait.
func TestMachineDoesNothingByItself(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	methods := 0
	for _, file := range files {
		if name := file.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range parsed.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && ofMachine(f) {
					methods++
					for _, what := range acts(f) {
						t.Errorf("%s: the machine's %s has %s: give a command, and let the loop do it", name, f.Name.Name, what)
					}
				}
			}
		}
	}
	if methods < 30 {
		t.Errorf("%d methods of machines: this test looks in the wrong place", methods)
	}
}

func ofMachine(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return false
	}
	star, ok := f.Recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	name, ok := star.X.(*ast.Ident)
	return ok && name.Name == "machine"
}

// acts lists the calls of a function that do more than decide.
func acts(f *ast.FuncDecl) []string {
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, "a go statement")
		case *ast.SendStmt:
			found = append(found, "a sending")
		case *ast.SelectStmt:
			found = append(found, "a select")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				found = append(found, "a receiving")
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer"}, n.Sel.Name) {
				found = append(found, strconv.Quote("time."+n.Sel.Name))
			}
		}
		return true
	})
	return found
}

// at returns a time of a fixed day, for example "10:00:05".
func at(t testing.TB, clock string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.DateTime, "2026-03-01 "+clock)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func mustParse(t testing.TB, spec string) schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
