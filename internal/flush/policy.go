package flush

import (
	"cmp"
	"errors"
	"fmt"

	"baton/internal/flush/mapping"
)

// Policy is what a source leaves to its job to decide. Its description makes it of what
// the job says; the zero value suits a source that leaves nothing open.
type Policy struct {
	// OnMissing is what becomes of a row whose record is gone. Default: ignore, since
	// most sources have no record that is gone.
	OnMissing OnMissing
	// OnDecrease is what a total means that is lower than what the database has of it
	// (row.ByMark). Default: stop.
	OnDecrease OnDecrease
	// BatchRows is how many totals a batch has at most (row.ByMark); other sources cut
	// their pages themselves. Default: 5000.
	BatchRows int
	// VanishedPct is the share of the rows, in percent, that a complete pass may delete
	// because it did not find them; the source has to be a Sweeper. 0: none are deleted.
	VanishedPct int
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
