package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"baton/internal/testsupport/cluster"
)

// report writes a summary of the test for people.
func (l *lab) report(want *state, v verdict) {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", what, fmt.Sprintf(format, args...))
	}
	events, runs := l.history.result()
	answers, asked := l.probes.result()
	kinds, states, ends := map[string]int{}, map[string]int{}, map[string]int{}
	for _, s := range l.strikes {
		kinds[string(s.kind)]++
	}
	for _, r := range runs {
		if r.state == "running" {
			r.state = "cut short" // the process died, and nobody recorded its end
		}
		states[r.state]++
	}
	for _, e := range events {
		ends[e.name]++
	}
	exits := 0
	for _, u := range l.keeper.Units {
		exits += len(u.Down)
	}
	line("faults", "%d", len(l.strikes))
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		line("", "%3d %s", kinds[k], k)
	}
	line("exits", "%d, of which %d with code %d after SIGSTOP", exits, l.keeper.CannotStop, cluster.ExitCannotStop)
	line("written", "%d increments, %d rows put, %d rows dropped", want.increments, want.puts, want.drops)
	line("terms", "%d: %s", ends["won"], counted(ends))
	line("runs", "%d: %s", len(runs), counted(states))
	line("asked", "%d times who leads, %d times \"I do\"", asked, len(answers))
	line("leader back", "%s", tell(l.recoveries, func(r recovery) time.Duration { return r.lead }))
	line("flush back", "%s", tell(l.recoveries, func(r recovery) time.Duration { return r.flush }))
	line("drained", "in %v", l.drained.Round(time.Millisecond))
	line("audit", "%d rows compared: %d lost, %d duplicated", v.rows, v.lost, v.double)
	fmt.Print(b.String())
}

func counted(m map[string]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(parts, ", ")
}
