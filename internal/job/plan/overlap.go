package plan

// Overlap is the policy for a run that is due while an earlier run is in progress.
type Overlap string

// These are the overlap policies.
const (
	OverlapForbid   Overlap = "forbid"    // the run is missed, or refused if it is a manual run
	OverlapQueueOne Overlap = "queue_one" // the run waits; of several waiting runs only the latest stays
	OverlapReplace  Overlap = "replace"   // the earlier run is cancelled, and then this run begins
	OverlapAllow    Overlap = "allow"     // both run
)

// OverlapDecision says what happens to a run that is due while another run of its job is in progress.
type OverlapDecision struct {
	Begin  bool // the run begins beside the other run
	Wait   bool // the run begins when the other run has ended; with neither it does not begin
	Cancel bool // the other run is cancelled
}

// overlapDecisions holds the decision for each policy. These decisions are described in docs/jobs.md.
var overlapDecisions = map[Overlap]OverlapDecision{
	OverlapForbid:   {},
	OverlapQueueOne: {Wait: true},
	OverlapReplace:  {Wait: true, Cancel: true},
	OverlapAllow:    {Begin: true},
}

// Due describes the situation of a run that is due.
type Due struct {
	Forced bool // an operator has forced the run
	// InTurn means that the run is one of the slots that are run one after the other, by catch_up: all.
	InTurn bool
	// Rerun means that the run repeats a lost run, or waits for a run that repeats a lost run.
	Rerun bool
	// GoingOn is the number of other runs. Most is the maximum number of runs with OverlapAllow; 0 means unlimited.
	GoingOn, Most int
}

// Decide decides about a run that is due while another run of its job is in progress. A run that is in turn, or a rerun, is already late
// and must not be skipped. So it waits for the other run under every policy, except that a rerun can begin beside other runs with
// OverlapAllow.
func (o Overlap) Decide(d Due) OverlapDecision {
	switch {
	case d.Forced:
		return OverlapDecision{Begin: true}
	case d.InTurn, d.Rerun && o != OverlapAllow:
		return OverlapDecision{Wait: true}
	case o == OverlapAllow && d.Most > 0 && d.GoingOn >= d.Most:
		return OverlapDecision{Wait: d.Rerun}
	}
	return overlapDecisions[o]
}
