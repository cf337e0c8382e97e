package flush

// Step names a boundary of the protocol: a place where the process may die, the
// connection may break or the leadership may end. Tests stop a run at each.
type Step string

// The boundaries, in the order in which a run comes by. From StepPageRead to
// StepDone they repeat for every page; the reader may be one page ahead of the
// writer, and StepDone one page behind.
const (
	StepCompiled       Step = "compiled"         // catalogue read, mapping compiled
	StepBeforeTakeOver Step = "before-take-over" // about to claim the fence
	StepTakenOver      Step = "taken-over"       // the fence is ours, and committed
	StepBeforeStage    Step = "before-stage"     // a new stage id is chosen
	StepStaged         Step = "staged"           // the stage is frozen in Redis
	StepPageRead       Step = "page-read"        // a page has been read
	StepConverted      Step = "converted"        // and made into a batch
	StepBeforeApply    Step = "before-apply"     // about to write the batch
	StepApplied        Step = "applied"          // the batch is committed
	StepDone           Step = "done"             // the page is removed from the stage
	StepBeforeSweep    Step = "before-sweep"     // a pass over a scan is complete, and committed
	StepStaleCounted   Step = "stale-counted"    // not too many rows have vanished, or some are deleted
	StepStaleRead      Step = "stale-read"       // a page of them is read
	StepRechecked      Step = "rechecked"        // and was looked for again
	StepSwept          Step = "swept"            // the last of them is deleted
	StepBeforeDiscard  Step = "before-discard"   // every page is committed
	StepDiscarded      Step = "discarded"        // the stage is gone
)

// Steps lists every boundary, in order.
func Steps() []Step {
	return []Step{
		StepCompiled, StepBeforeTakeOver, StepTakenOver, StepBeforeStage, StepStaged, StepPageRead,
		StepConverted, StepBeforeApply, StepApplied, StepDone,
		StepBeforeSweep, StepStaleCounted, StepStaleRead, StepRechecked, StepSwept, StepBeforeDiscard, StepDiscarded,
	}
}
