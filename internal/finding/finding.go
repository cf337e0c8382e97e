// Package finding defines the form of the findings of `baton doctor`.
package finding

// Severity says how grave a finding is.
type Severity string

// These are the severities, the gravest first.
const (
	SeverityError   Severity = "error"   // data can be lost silently, or nothing can be flushed
	SeverityWarning Severity = "warning" // certain faults, or certain records, would lose data
	SeverityInfo    Severity = "info"    // information that is worth knowing
	SeverityOK      Severity = "ok"      // the check found no fault
)

// Rank returns a number for sorting by severity: 0 for the gravest severity, and higher numbers for less grave severities.
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

// Finding is the result of one check of something that flushes need, such as a server's settings, a table or a permission.
type Finding struct {
	Severity    Severity `json:"severity"`
	Subject     string   `json:"subject"`              // redis, database "main", job "users"
	What        string   `json:"what"`                 // the finding itself
	Consequence string   `json:"consequence,omitzero"` // the loss that may follow
	Remedy      string   `json:"remedy,omitzero"`
}
