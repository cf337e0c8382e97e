package alert

import (
	"context"
	"slices"
	"time"

	"baton/internal/elector"
	"baton/internal/redisledger"
	"baton/internal/redislock"
)

// States reads the state of jobs. A ledger implements it.
type States interface {
	Jobs(ctx context.Context, names []string) ([]redisledger.JobState, error)
}

// History reads which nodes have led before. An election implements it.
type History interface {
	State(ctx context.Context, events int) (redislock.ElectionState, error)
}

// whyCrashed is the reason for the end of a term whose node has not reported the end. That node died, hangs, or cannot reach Redis.
const whyCrashed = "crashed"

// ending returns the term whose end is described by the event e.
func ending(e redislock.Event) previousTerm {
	if e.Code == elector.CodeLeaseEnded || e.Code == elector.CodeCrashed {
		return previousTerm{node: e.NodeID, why: whyCrashed}
	}
	return previousTerm{node: e.NodeID, why: e.Event, ended: e.At}
}

// previousTerm is the term before this node's term.
type previousTerm struct {
	node  string
	why   string    // the event that ended the term, or whyCrashed
	ended time.Time // zero if the time is unknown
}

// before returns the term before the latest term. It returns false if there was no earlier term.
func before(p redislock.ElectionState) (previousTerm, bool) {
	ours := slices.IndexFunc(p.Events, func(e redislock.Event) bool { return e.Event == string(elector.EventWon) })
	if ours < 0 {
		return previousTerm{}, false
	}
	for _, e := range p.Events[ours+1:] {
		switch {
		case elector.EventKind(e.Event).Ends():
			return ending(e), true
		case e.Event != string(elector.EventWon):
			continue
		}
		// The previous leader did not report its end before this term began, but it may have reported it afterwards.
		for _, late := range p.Events[:ours] {
			if late.NodeID == e.NodeID && elector.EventKind(late.Event).Ends() {
				return previousTerm{node: e.NodeID, why: late.Event, ended: late.At}, true
			}
		}
		return previousTerm{node: e.NodeID, why: whyCrashed}, true
	}
	return previousTerm{}, false
}

// termNotes are the notifications of one term.
type termNotes struct {
	*Notifications
	lockKey  string
	epoch    int64
	began    time.Time
	ledger   States
	election History
	prev     previousTerm
	asked    bool // whether prev was read
}

// Begin records that this node leads. It must be called before any event of the term is reported. The caller runs the returned function in
// parallel with the jobs. That function reads the state before the term, reports the new leader, and watches for late jobs until ctx ends.
func (n *Notifications) Begin(lockKey string, epoch int64, ledger States, election History) func(ctx context.Context) {
	t := &termNotes{Notifications: n, lockKey: lockKey, epoch: epoch, began: time.Now(), ledger: ledger, election: election}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.epochs[lockKey] = epoch
	for name, j := range n.jobs {
		if j.lock == lockKey { // this node's own state is from an earlier term
			n.jobs[name] = j.anew()
		}
	}
	return t.follow
}

// eventsAsked is how many events of the history are read. They are enough to include the previous term, even if the history also contains
// pauses and quarantines.
const eventsAsked = 50

func (t *termNotes) follow(ctx context.Context) {
	const soon = time.Second
	for ctx.Err() == nil {
		pause := lateEvery
		if t.hasTargets() {
			if !t.know(ctx) {
				pause = soon
			}
			t.watchLate(ctx, t.lockKey, t.ledger)
		} else {
			t.asked = true // a target that is added later must not get old news
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	// The kept events are sent without the state of the jobs.
	t.take(t.unknown(), nil)
}

// know reads the state at the beginning of the term. It returns false if it cannot read the state yet.
func (t *termNotes) know(ctx context.Context) bool {
	if !t.asked {
		p, err := t.election.State(ctx, eventsAsked)
		if err != nil {
			return false
		}
		t.asked = true
		var changed bool
		if t.prev, changed = before(p); changed {
			t.won(t.lockKey, t.epoch, t.prev.node, t.prev.why)
		}
	}
	names := t.unknown()
	if len(names) == 0 {
		return true
	}
	states, err := t.ledger.Jobs(ctx, names)
	if err != nil {
		return false
	}
	t.take(names, states)
	return true
}

// unknown returns the lock's jobs whose state is unknown.
func (t *termNotes) unknown() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for name, j := range t.jobs {
		if j.lock == t.lockKey && !j.known {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// take records the state of jobs. If states is nil, it treats the jobs as jobs without a state.
func (t *termNotes) take(names []string, states []redisledger.JobState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, name := range names {
		var st redisledger.JobState
		if states != nil {
			st = states[i]
		}
		if j := t.jobs[name]; j != nil && j.lock == t.lockKey && !j.known {
			t.learn(j, st, t.began, t.prev)
			t.reportLetters(name, j)
		}
	}
}
