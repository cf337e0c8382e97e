// Package finding is what doctor tells of the ground that flushes stand on.
package finding

// Severity says how much a finding matters.
type Severity string

// The severities, the gravest first.
const (
	SeverityError   Severity = "error"   // data can be lost without a trace, or nothing can be flushed
	SeverityWarning Severity = "warning" // some fault, or some records, would cost data
	SeverityInfo    Severity = "info"    // worth knowing
	SeverityOK      Severity = "ok"      // what was looked at, and is as it should be
)

// Rank orders severities: 0 is the gravest.
func (s Severity) Rank() int {
	switch s {
	case SeverityError:
		return 0
	case SeverityWarning:
		return 1
	case SeverityInfo:
		return 2
	}
	return 3
}

// Finding is something about the ground that a flush stands on: a server's settings,
// a table, a permission. What a flush promises holds as far as it holds.
type Finding struct {
	Severity    Severity `json:"severity"`
	Subject     string   `json:"subject"`              // redis, database "main", job "users"
	What        string   `json:"what"`                 // what was found
	Consequence string   `json:"consequence,omitzero"` // what can be lost
	Remedy      string   `json:"remedy,omitzero"`
}
