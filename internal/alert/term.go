package alert

import (
	"context"
	"slices"
	"time"

	"baton/internal/elector"
	"baton/internal/redisledger"
	"baton/internal/redislock"
)

// States is where to read how jobs stand: a ledger.
type States interface {
	Jobs(ctx context.Context, names []string) ([]redisledger.JobState, error)
}

// History is where to read who led before: an election.
type History interface {
	Picture(ctx context.Context, events int) (redislock.Picture, error)
}

// whyCrashed is how a term ended whose node has reported nothing of its end: it died, hangs,
// or cannot reach Redis.
const whyCrashed = "crashed"

// ending is how a term ended by that event.
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
	ended time.Time // zero: not known
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
		// It did not say that it had ended before this one began; perhaps afterwards.
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
	asked    bool // prev is known
}

// Begin notes that this node leads, before anything of the term is reported. What it returns
// is to be run beside the jobs: it finds out how things stood, reports that the leader
// changed, and watches for jobs that are late, until ctx ends.
func (n *Notifications) Begin(lockKey string, epoch int64, ledger States, election History) func(ctx context.Context) {
	t := &termNotes{Notifications: n, lockKey: lockKey, epoch: epoch, began: time.Now(), ledger: ledger, election: election}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.epochs[lockKey] = epoch
	for name, j := range n.jobs {
		if j.lock == lockKey { // whatever this node knew is a term old
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
			t.asked = true // a target that is added later would get old news
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	// What is held is sent without knowing better.
	t.take(t.unknown(), nil)
}

// know finds out how things stood when the term began; false: not yet.
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

// unknown are the lock's jobs of which it is not known how they stood.
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

// take notes how jobs stood; without states as if nothing were known of them.
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
