package flush

import (
	"cmp"
	"errors"
	"fmt"

	"baton/internal/flush/mapping"
)

// Policy holds the settings that a source leaves to its job. The source's description makes it from the job's configuration; the zero
// value is for a source without such settings.
type Policy struct {
	// OnMissing applies to a row whose record is gone. Default: ignore, since in most sources
	// no record goes away.
	OnMissing OnMissing
	// OnDecrease applies to a total below its mark in the database (row.ByMark). Default:
	// stop.
	OnDecrease OnDecrease
	// BatchRows is the maximum number of totals in a batch (row.ByMark); other sources size
	// their pages themselves. Default: 5000.
	BatchRows int
	// VanishedPct is the maximum share of rows, in percent, that a complete pass deletes
	// because it did not find them; the source has to be a Sweeper. 0: none are deleted.
	VanishedPct int
	// RepairPct is the maximum share of rows, in percent, that a repair marks because they have no
	// record; 0: as VanishedPct.
	RepairPct int
}

// OnMissing is a choice of the mapping, which a source need not know.
type OnMissing = mapping.OnMissing

// complete fills in the defaults. It returns every choice that is unknown.
func (p *Policy) complete() error {
	var problems []error
	p.OnMissing = cmp.Or(p.OnMissing, mapping.MissingIgnore)
	switch p.OnMissing {
	case mapping.MissingDelete, mapping.MissingIgnore, mapping.MissingNull:
	default:
		problems = append(problems, fmt.Errorf("on_missing: %q is unknown: it is delete, ignore or null", string(p.OnMissing)))
	}
	if err := p.OnDecrease.check(); err != nil {
		problems = append(problems, err)
	}
	if p.BatchRows <= 0 {
		p.BatchRows = defaultBatchRows
	}
	return errors.Join(problems...)
}
