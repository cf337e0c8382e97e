// Package finding is the form of doctor's results.
package finding

// Severity is the importance of a finding.
type Severity string

// The severities, the gravest first.
const (
	SeverityError   Severity = "error"   // data can be lost silently, or nothing can be flushed
	SeverityWarning Severity = "warning" // certain faults, or certain records, would cost data
	SeverityInfo    Severity = "info"    // worth knowing
	SeverityOK      Severity = "ok"      // checked, and as it should be
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

// Finding is the result of a check of what flushes rely on: a server's settings, a table, a
// permission.
type Finding struct {
	Severity    Severity `json:"severity"`
	Subject     string   `json:"subject"`              // redis, database "main", job "users"
	What        string   `json:"what"`                 // the finding itself
	Consequence string   `json:"consequence,omitzero"` // the loss that may follow
	Remedy      string   `json:"remedy,omitzero"`
}
