package model

import (
	"fmt"
	"slices"
	"strings"
)

// These are the actions.
const (
	falls uint8 = iota + 1 // a slot falls due
	takes
	loses
	sends
	asksAgain
	givesUp
	executes
	executesTwice
	starts
	succeeds
	fails
)

// Story tells the counterexample of an exploration, one step a line.
func (p SlotsProtocol) Story(e *Exploration[Slots]) string {
	var b strings.Builder
	for i, turn := range e.Path {
		fmt.Fprintf(&b, "%2d. %s\n", i+1, slotSentence(turn))
	}
	return b.String() + "    " + e.Broken + "\n"
}

func slotSentence(t Turn[Slots]) string {
	s, from, to := t.Step, t.From, t.Step.To
	name := "A deposed node"
	if s.Node >= 0 {
		name = string(rune('A' + t.Names[s.Node]))
	}
	switch s.Act {
	case falls:
		return fmt.Sprintf("Slot %d is due.", to.due)
	case takes:
		n := to.node[s.Node]
		text := fmt.Sprintf("%s leads, in term %d.", name, n.term)
		if n.phase == losing {
			text += " It finds that " + n.run.String() + " is open."
		}
		return text
	case loses:
		return fmt.Sprintf("Term %d ends, and its runs are killed.", from.lock)
	case sends:
		n := to.node[s.Node]
		return name + " asks to " + verb(call{phase: n.phase, run: n.run}) + "."
	case asksAgain:
		n := to.node[s.Node]
		text := " asks to "
		if q := (call{phase: n.phase, run: n.run, first: n.run.attempt == 1}); slices.Contains(from.net[:], q) {
			text = " has no answer, and asks again to "
		}
		return name + text + verb(call{phase: n.phase, run: n.run}) + "."
	case givesUp:
		return fmt.Sprintf("%s gives the claim up, and asks to record slot %d as missed.", name, to.node[s.Node].run.slot)
	case starts:
		return name + " starts " + to.node[s.Node].run.String() + "."
	case succeeds:
		return "The run of " + name + " succeeds."
	case fails:
		return "The run of " + name + " fails, and is to be tried again."
	}
	q := from.net[s.Detail-1]
	text := fmt.Sprintf("Redis executes the request to %s", verb(q))
	if q.late {
		text = fmt.Sprintf("Redis executes the late request to %s", verb(q))
	}
	if from.ledger == to.ledger && from.misses == to.misses {
		text += ": nothing changes"
	}
	text += "."
	if s.Act == executesTwice {
		return text + " The same request is on its way once more."
	}
	if s.Node >= 0 && to.node[s.Node] == from.node[s.Node] {
		text += " The answer is lost."
	}
	return text
}

// String describes a run.
func (r run) String() string {
	return fmt.Sprintf("attempt %d of slot %d in term %d", r.attempt, r.slot, r.term)
}

// verb describes a request.
func verb(q call) string {
	switch q.phase {
	case asking:
		return "claim " + q.run.String()
	case missing:
		return fmt.Sprintf("record slot %d as missed, by term %d", q.run.slot, q.run.term)
	case losing:
		return "record " + q.run.String() + " as lost"
	case failed:
		return "record the failure of " + q.run.String()
	}
	return "record the success of " + q.run.String()
}
