// Package wire is the format that the commands of this test write and its judge reads. Each event is one line of JSON, appended by one
// write(2). So the lines of several processes never mix, and no written line is lost when its process dies.
package wire

// Kind is the kind of event that a line records.
type Kind string

// These are the kinds.
const (
	Begin Kind = "begin" // the first line of a run
	Beat  Kind = "beat"  // a process of the run is alive
	End   Kind = "end"   // the last line of a run, unless its process was killed
)

// Line is one line. Only the line of Begin has all fields.
type Line struct {
	Kind Kind   `json:"k"`
	Run  string `json:"run"`
	Boot int64  `json:"boot"` // CLOCK_BOOTTIME in nanoseconds, which all processes of the machine share
	Code int    `json:"code,omitempty"`

	Wall    int64  `json:"wall,omitempty"` // wall clock of the machine, in nanoseconds
	Job     string `json:"job,omitempty"`
	Slot    string `json:"slot,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Epoch   int64  `json:"epoch,omitempty"`
	Node    string `json:"node,omitempty"`
	Trigger string `json:"trigger,omitempty"`
	Lock    string `json:"lock,omitempty"`
	Pid     int    `json:"pid,omitempty"`
}
