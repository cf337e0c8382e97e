package sqlstore

import (
	"fmt"

	"baton/internal/flush"
)

// Step is a boundary of the protocol, where a process may die or a connection drop.
type Step string

// The steps of Apply and TakeOver, in their order.
const (
	StepBeforeBegin Step = "before begin"
	StepAfterBegin  Step = "after begin"
	StepAfterLedger Step = "after ledger"
	StepAfterMove   Step = "after move" // instead of the ledger, where the position is in the database
	StepAfterRows   Step = "after rows"
	StepAfterMarks  Step = "after marks"
	StepAfterDead   Step = "after dead letters"
	StepAfterFence  Step = "after fence check"
	StepAfterCommit Step = "after commit"

	StepTakeOverBeforeCommit Step = "take over: before commit"
	StepTakeOverAfterCommit  Step = "take over: after commit"
)

// Steps lists every step, those of Apply first.
func Steps() []Step {
	return []Step{
		StepBeforeBegin, StepAfterBegin, StepAfterLedger, StepAfterMove, StepAfterRows, StepAfterMarks, StepAfterDead,
		StepAfterFence, StepAfterCommit,
		StepTakeOverBeforeCommit, StepTakeOverAfterCommit,
	}
}

func (s *Store) at(step Step) error {
	if s.observe == nil {
		return nil
	}
	if err := s.observe(step); err != nil {
		return fmt.Errorf("stopped %s: %w: %w", step, flush.ErrTransient, err)
	}
	return nil
}
