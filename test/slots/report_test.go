package slots

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"baton/internal/testsupport/cluster"
)

// report says what happened, for a person.
func (l *lab) report(e evidence, wrongs []string) {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", what, fmt.Sprintf(format, args...))
	}
	line("faults", "%d", len(l.nemesis.Strikes))
	for _, k := range l.nemesis.Kinds() {
		line("", "%s", k)
	}
	perLock := map[string]int{}
	for _, t := range e.terms {
		perLock[t.lock]++
	}
	line("terms", "%d: %s", len(e.terms), counted(perLock))
	line("exits", "%d with code %d after SIGSTOP", l.keeper.CannotStop, cluster.ExitCannotStop)
	slots, started, states := 0, 0, map[string]int{}
	reasons, triggers := map[string]int{}, map[string]int{}
	for _, s := range e.jobs {
		due := s.slotsBetween(e.from, e.until)
		slots += len(due)
		ran := map[int64]bool{}
		runs, entries := e.of(s.name)
		for _, r := range runs {
			ran[r.slot.UnixMilli()] = true
			triggers[r.trigger]++
		}
		for _, at := range due {
			if ran[at.UnixMilli()] {
				started++
			}
		}
		for _, h := range entries {
			if h.missed() {
				reasons[h.reason] += h.count
			} else {
				states[h.state]++
			}
		}
	}
	line("slots", "%d of %d jobs, of which %d were started", slots, len(e.jobs), started)
	line("starts", "%d: %s", len(e.runs), counted(triggers))
	line("runs", "%s", counted(states))
	line("missed", "%s", counted(reasons))
	line("wrong", "%d", len(wrongs))
	fmt.Print(b.String())
}

func counted(m map[string]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(parts, ", ")
}
