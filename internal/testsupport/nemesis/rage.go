package nemesis

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Nemesis executes schedules of faults in one goroutine.
type Nemesis struct {
	// Begin starts a fault. It returns the target of the fault, and a function that ends the fault.
	Begin func(Fault) (target string, end func())
	// Tick is called between the faults, some hundred times per second.
	Tick func()
	Log  *Timeline
	// Strikes contains the faults that were executed.
	Strikes []Strike
}

// Strike is a fault that was executed.
type Strike struct {
	Fault
	Target       string
	Begun, Ended time.Time
}

const every = 3 * time.Millisecond

// Rage executes a schedule, and returns when every fault has ended.
func (n *Nemesis) Rage(faults []Fault) {
	start := time.Now()
	lasting := map[int]func(){} // the functions that end the faults, by index in Strikes
	for len(faults) > 0 || len(lasting) > 0 {
		n.Tick()
		for i, end := range lasting {
			if s := &n.Strikes[i]; time.Since(s.Begun) >= s.Lasts {
				delete(lasting, i)
				end()
				s.Ended = time.Now()
				n.Log.Add("over: %s (%s)", s.Kind, s.Target)
			}
		}
		if len(faults) > 0 && time.Since(start) >= faults[0].At && !n.broken(faults[0].Place) {
			i := len(n.Strikes)
			n.Strikes = append(n.Strikes, Strike{Fault: faults[0], Begun: time.Now()})
			var target string
			target, lasting[i] = n.Begin(faults[0])
			n.Strikes[i].Target = target
			n.Log.At(n.Strikes[i].Begun, "FAULT %v (%s)", faults[0], target)
			faults = faults[1:]
		}
		time.Sleep(every)
	}
}

// Rest lets the time d pass without a new fault.
func (n *Nemesis) Rest(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(every) {
		n.Tick()
	}
}

// broken reports whether an earlier fault at that place still lasts.
func (n *Nemesis) broken(place string) bool {
	return slices.ContainsFunc(n.Strikes, func(s Strike) bool { return s.Place == place && s.Ended.IsZero() })
}

// Kinds returns the number of executed faults of each kind, one kind per line.
func (n *Nemesis) Kinds() []string {
	kinds := map[string]int{}
	for _, s := range n.Strikes {
		kinds[s.Kind]++
	}
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		lines = append(lines, fmt.Sprintf("%3d %s", kinds[k], k))
	}
	return lines
}
