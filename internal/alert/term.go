package alert

import (
	"context"
	"slices"
	"time"

	"baton/internal/elector"
	"baton/internal/redisledger"
	"baton/internal/redislock"
)

// States reads the state of jobs: a ledger.
type States interface {
	Jobs(ctx context.Context, names []string) ([]redisledger.JobState, error)
}

// History reads the earlier leaders: an election.
type History interface {
	Picture(ctx context.Context, events int) (redislock.Picture, error)
}

// whyCrashed is the end of a term whose node has not reported it: it died, hangs, or cannot reach Redis.
const whyCrashed = "crashed"

// ending is the end of a term by that event.
func ending(e redislock.Event) previousTerm {
	if e.Code == elector.CodeLeaseEnded || e.Code == elector.CodeCrashed {
		return previousTerm{node: e.NodeID, why: whyCrashed}
	}
	return previousTerm{node: e.NodeID, why: e.Event, ended: e.At}
}

// previousTerm is the term before this node's.
type previousTerm struct {
	node  string
	why   string    // the event that ended it, or whyCrashed
	ended time.Time // zero: unknown
}

// before finds the term before the one that began last; false if there was none.
func before(p redislock.Picture) (previousTerm, bool) {
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
		// It did not report its end before this term began; perhaps it did so afterwards.
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
	asked    bool // prev was read
}

// Begin notes that this node leads, before anything of the term is reported. The caller runs the returned function beside the jobs: it
// reads the state before the term, reports the change of the leader, and watches for late jobs until ctx ends.
func (n *Notifications) Begin(lockKey string, epoch int64, ledger States, election History) func(ctx context.Context) {
	t := &termNotes{Notifications: n, lockKey: lockKey, epoch: epoch, began: time.Now(), ledger: ledger, election: election}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.epochs[lockKey] = epoch
	for name, j := range n.jobs {
		if j.lock == lockKey { // this node's own memory is a term old
			n.jobs[name] = j.anew()
		}
	}
	return t.follow
}

// eventsAsked is enough to find the term before among pauses and quarantines.
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
	// The held events are sent without that state.
	t.take(t.unknown(), nil)
}

// know reads the state at the beginning of the term; false: not yet.
func (t *termNotes) know(ctx context.Context) bool {
	if !t.asked {
		p, err := t.election.Picture(ctx, eventsAsked)
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

// unknown are the lock's jobs whose state is unknown.
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

// take notes the state of jobs; without states it is as if they had none.
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
