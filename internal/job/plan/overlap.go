package plan

// Overlap is the policy for a run that is due while an earlier one goes on.
type Overlap string

// The overlap policies.
const (
	OverlapForbid   Overlap = "forbid"    // it is missed, or refused if it is a manual run
	OverlapQueueOne Overlap = "queue_one" // it waits; of several that wait the latest stays
	OverlapReplace  Overlap = "replace"   // the earlier one is cancelled, then it runs
	OverlapAllow    Overlap = "allow"     // both run
)

// Clash is the decision about a run that is due while another of its job goes on.
type Clash struct {
	Begin  bool // it begins beside the other
	Wait   bool // it begins when the other has ended; with neither it does not begin
	Cancel bool // the other is cancelled
}

// clashes are the policies of docs/jobs.md, "a slot comes while a run goes on".
var clashes = map[Overlap]Clash{
	OverlapForbid:   {},
	OverlapQueueOne: {Wait: true},
	OverlapReplace:  {Wait: true, Cancel: true},
	OverlapAllow:    {Begin: true},
}

// Due is the situation of a run that is due.
type Due struct {
	Forced bool // an operator has forced it
	// InTurn: it is one of the slots that are run one after the other, by catch_up: all.
	InTurn bool
	// Rerun: it repeats a lost run, or waits for one that does.
	Rerun bool
	// GoingOn is the number of other runs, Most the maximum with OverlapAllow; 0: unlimited.
	GoingOn, Most int
}

// Clash decides about a run that is due while another of its job goes on. A run in turn or a rerun waits under every
// policy: it is late already, and must not be skipped.
func (o Overlap) Clash(d Due) Clash {
	switch {
	case d.Forced:
		return Clash{Begin: true}
	case d.InTurn, d.Rerun && o != OverlapAllow:
		return Clash{Wait: true}
	case o == OverlapAllow && d.Most > 0 && d.GoingOn >= d.Most:
		return Clash{Wait: d.Rerun}
	}
	return clashes[o]
}
