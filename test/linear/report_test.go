package linear

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// report writes a summary of the test for people.
func (l *lab) report(check string, recovered []time.Duration, shared time.Duration) {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", what, fmt.Sprintf(format, args...))
	}
	kinds, outcomes, lives, acted := map[string]int{}, map[string]int{}, 0, 0
	for _, s := range l.strikes {
		kinds[string(s.kind)]++
	}
	for _, o := range l.history.operations {
		outcome := string(o.outcome)
		if outcome == "" {
			outcome = "cut short"
		}
		if o.meddles {
			outcome = "for nobody " + outcome
		}
		outcomes[string(o.op)+" "+outcome]++
	}
	for _, u := range l.units {
		lives += u.life
	}
	for _, t := range l.history.terms {
		if t.first != 0 {
			acted++
		}
	}
	line("design", "%s", l.design)
	line("faults", "%d", len(l.strikes))
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		line("", "%3d %s", kinds[k], k)
	}
	line("processes", "%d lives of %d nodes", lives, nodes)
	line("operations", "%d: %s", len(l.history.operations), counted(outcomes))
	line("terms", "%d, of which %d acted", len(l.history.terms), acted)
	line("recovery", "%s", tell(recovered))
	line("check", "%s", check)
	line("overlap", "%v", shared)
	fmt.Print(b.String())
}

func counted(m map[string]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(parts, ", ")
}

func tell(took []time.Duration) string {
	waited := slices.DeleteFunc(slices.Clone(took), func(d time.Duration) bool { return d == 0 })
	if len(waited) == 0 {
		return fmt.Sprintf("somebody led at the end of all %d", len(took))
	}
	slices.Sort(waited)
	return fmt.Sprintf("somebody led at the end of %d, else within %v (median), %v (longest of %d)",
		len(took)-len(waited), waited[len(waited)/2].Round(time.Millisecond), waited[len(waited)-1].Round(time.Millisecond), len(waited))
}
