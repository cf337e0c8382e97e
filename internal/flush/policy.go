package flush

import (
	"cmp"
	"errors"
	"fmt"

	"baton/internal/flush/mapping"
)

// Policy holds the settings that a source leaves to its job. The source's description derives the policy from the job's configuration. The
// zero value is for sources without such settings.
type Policy struct {
	// OnMissing says what happens to a row whose record no longer exists. Default: "ignore", because in most sources records do not
	// disappear.
	OnMissing OnMissing
	// OnDecrease says what happens if a total is below its mark in the database (row.ByMark). Default: "stop".
	OnDecrease OnDecrease
	// BatchRows is the maximum number of totals in a batch (row.ByMark). Other sources choose the size of their pages themselves. Default:
	// 5000.
	BatchRows int
	// VanishedPct is the maximum share of rows, in percent, that the job deletes because a complete pass did not find their records. It
	// requires a source that is a Sweeper. 0 means that no row is deleted.
	VanishedPct int
	// RepairPct is the maximum share of rows, in percent, that a repair marks because they have no record. 0 means VanishedPct.
	RepairPct int
}

// OnMissing is a setting of the mapping, declared here so that a source need not import package mapping.
type OnMissing = mapping.OnMissing

// complete sets the defaults. It returns an error for every unknown choice.
func (p *Policy) complete() error {
	var problems []error
	p.OnMissing = cmp.Or(p.OnMissing, mapping.MissingIgnore)
	switch p.OnMissing {
	case mapping.MissingDelete, mapping.MissingIgnore, mapping.MissingNull:
	default:
		problems = append(problems, fmt.Errorf("on_missing: %q is unknown: use delete, ignore or null", string(p.OnMissing)))
	}
	if err := p.OnDecrease.check(); err != nil {
		problems = append(problems, err)
	}
	if p.BatchRows <= 0 {
		p.BatchRows = defaultBatchRows
	}
	return errors.Join(problems...)
}
