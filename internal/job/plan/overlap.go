package plan

// Overlap says what becomes of a run that is due while an earlier one goes on.
type Overlap string

// The ways to overlap.
const (
	OverlapForbid   Overlap = "forbid"    // it is missed, or refused if it is a manual run
	OverlapQueueOne Overlap = "queue_one" // it waits; of several that wait the latest stays
	OverlapReplace  Overlap = "replace"   // the earlier one is cancelled, then it runs
	OverlapAllow    Overlap = "allow"     // both run
)

// Clash is what is done about a run that is due while another of its job goes on.
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

// Due is a run that is due, as far as it matters to others of its job.
type Due struct {
	Forced bool // an operator wants it whatever goes on
	// InTurn: it belongs to slots that are run one after the other, by catch_up: all.
	InTurn bool
	// Rerun: it repeats a run that was lost with its leader, or it waits for one that does.
	Rerun bool
	// GoingOn is how many others go on, and Most how many may at a time with OverlapAllow; 0: any number.
	GoingOn, Most int
}

// Clash decides about a run that is due while another of its job goes on. What is run in turn, or again, waits
// whatever the policy is: it has come late already, and nothing is to be left out of it.
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
