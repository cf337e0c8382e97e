package daemon

import (
	"context"
	"errors"
	"time"

	"baton/internal/job/schedule"
	"baton/internal/redislock"
)

// aboutToBegin is how soon a job's next run keeps its lock from being handed over: the
// order has to be read, and what begins meanwhile would be cut off.
const aboutToBegin = 300 * time.Millisecond

// seatOf is a candidacy as the balancer sees it.
type seatOf struct{ *candidacy }

func (s seatOf) lockKey() string { return s.candidacy.lockKey }

func (s seatOf) leads() bool { return s.elector.Leading() != nil }

func (s seatOf) idle() bool {
	w, _ := s.current()
	always := map[string]bool{}
	for _, t := range w.tasks {
		always[t.config.Name] = schedule.IsAlways(t.schedule)
		next, ok := s.runner.Next(t.config.Name)
		if ok && !always[t.config.Name] && time.Until(next) < aboutToBegin {
			return false
		}
	}
	for _, a := range s.runner.Running() {
		if !always[a.Job] {
			return false
		}
	}
	return true
}

func (s seatOf) heard() (heard, error) {
	h := heard{leader: s.elector.Holder(), barred: s.elector.Waiting() != ""}
	h.free = h.leader == "" && !s.elector.Held()
	return h, s.elector.StoreTrouble()
}

func (s seatOf) read(ctx context.Context) (electionSeen, error) {
	p, err := s.election.Picture(ctx, 0)
	return electionIn(p), err
}

// electionIn is what the balancer needs of a picture.
func electionIn(p redislock.Picture) electionSeen {
	e := electionSeen{
		now: p.Now, lease: p.TTL, leader: p.Leader, free: p.Owner == "",
		barred: p.Paused != nil || p.Quarantine > 0 || p.StepDown != "" || p.Owner == "" && p.ReservedFor != "",
	}
	for _, n := range candidates(p) {
		e.nodes = append(e.nodes, contender{id: n.ID, priority: n.Priority, config: n.ConfigHash, seen: n.Seen(), aside: asideOf(p, n.ID) != "", reluctant: n.Reluctant})
	}
	return e
}

func (s seatOf) handOver(ctx context.Context, to, reason string) error {
	if !s.idle() {
		return errors.New("a run has begun meanwhile")
	}
	term := s.elector.Leading()
	if term == nil {
		return errors.New("the term has ended meanwhile")
	}
	return s.election.StepDownOwner(ctx, term.Owner(), to, reason)
}

// seats are the node's places in the elections that it contends in.
func (n *node) seats() []seat {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []seat
	for _, c := range n.candidacies {
		if !c.withdrawn {
			list = append(list, seatOf{c})
		}
	}
	return list
}

// reluctance is for how long a node that has stepped down by order is given no lock to
// spread the work: whoever ordered it has something in mind with that host.
const reluctance = 10 * time.Minute

// steppedDown notes that a term has ended by order.
func (n *node) steppedDown(reason string) {
	if isHandover(reason) {
		return
	}
	n.mu.Lock()
	if n.willing != nil {
		n.willing.Stop()
	}
	n.willing = time.AfterFunc(reluctance, func() { n.beReluctant(false) })
	n.mu.Unlock()
	n.beReluctant(true) // before this node tells anything else of itself
}

func (n *node) beReluctant(yes bool) {
	n.reluctant.Store(yes)
	for _, c := range n.all() {
		c.present()
	}
}
