// Package wire is what the commands of this test write down and its judge reads: one
// line of JSON for each thing, appended by one write(2), so that lines of many processes
// never mix and nothing that was written is lost with its process.
package wire

// Kind is what a line tells.
type Kind string

// The kinds.
const (
	Begin Kind = "begin" // first of all
	Beat  Kind = "beat"  // some process of the run is alive
	End   Kind = "end"   // last of all
)

// Line is one line. Only that of Begin has all of it.
type Line struct {
	Kind Kind   `json:"k"`
	Run  string `json:"run"`
	Boot int64  `json:"boot"` // CLOCK_BOOTTIME in nanoseconds: one clock for all processes
	Code int    `json:"code,omitempty"`

	Wall    int64  `json:"wall,omitempty"` // of the machine, in nanoseconds
	Job     string `json:"job,omitempty"`
	Slot    string `json:"slot,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Epoch   int64  `json:"epoch,omitempty"`
	Node    string `json:"node,omitempty"`
	Trigger string `json:"trigger,omitempty"`
	Lock    string `json:"lock,omitempty"`
	Pid     int    `json:"pid,omitempty"`
}
