package model

import (
	"fmt"
	"strings"
)

// These are the actions.
const (
	asks uint8 = iota + 1
	handles
	handlesTwice
	timesOut
	timesOutLate
	losesAnswer
	leadsFrom
	hearsHeld
	hearsWait
	extends
	hearsLost
	proves
	renews
	ends
	endsLate
	endsUnheard
	releasesEarly
	takesFence
	raises
	commits
	suspends
	wakes
	ticks
	drifts
	restarts
	losesData
	copies
	rewinds
	setBack
)

// Story tells the counterexample of an exploration, one step a line.
func (p LeaseProtocol) Story(e *Exploration[Lease]) string {
	var b strings.Builder
	for i, turn := range e.Path {
		t := telling{turn.From, turn.Step.To, turn.Names}
		fmt.Fprintf(&b, "%2d. %s\n", i+1, t.sentence(p, turn.Step))
	}
	return b.String() + "    " + e.Broken + "\n"
}

// telling tells one step.
type telling struct {
	from, to Lease
	names    Order
}

func (t telling) name(node int) string { return string(rune('A' + t.names[node])) }

func (t telling) sentence(p LeaseProtocol, s Step[Lease]) string {
	if s.Detail != 0 {
		return t.executed(p, s)
	}
	i := int(s.Node)
	switch s.Act {
	case ticks:
		return "One tick passes." + t.ended(p)
	case drifts:
		return "One tick passes, and the clock of " + t.name(i) + " does not notice it." + t.ended(p)
	case restarts:
		return "Redis restarts with all its data."
	case losesData:
		return "Redis restarts and has lost all its data."
	case copies:
		return "A snapshot, or a replica, gets the data of Redis."
	case rewinds:
		return "Redis continues with the data of the snapshot or the replica."
	case setBack:
		return "The clock of Redis is set back."
	}
	return t.name(i) + " " + t.action(p, i, s.Act) + "."
}

func (t telling) action(p LeaseProtocol, i int, act uint8) string {
	n := t.to.node[i]
	switch act {
	case asks:
		return fmt.Sprintf("sends an acquire (the highest epoch that it knows is %d)", n.floor)
	case timesOut:
		return "gives up its request, which is lost"
	case timesOutLate:
		return "gives up its request, which is still on its way"
	case losesAnswer:
		return "gives up its request, and the answer is lost"
	case leadsFrom:
		return fmt.Sprintf("reads that it has won: it leads under epoch %d, and trusts its lease for %d of %d ticks", n.epoch, n.window, p.ttl(i))
	case extends:
		if n.window > t.from.node[i].window {
			return fmt.Sprintf("reads that it has renewed: it trusts its lease for %d ticks", n.window)
		}
		return "reads that it has renewed, too late: its trust window does not move"
	case hearsLost:
		return "hears that it has lost the lock, and stops"
	case renews:
		return "sends a renewal" + t.past(i)
	case ends:
		return "ends its term, and Redis executes its release"
	case endsLate:
		return "ends its term and sends a release, which is on its way"
	case endsUnheard:
		return "ends its term, and its release is lost"
	case releasesEarly:
		return "sends its release while its work goes on"
	case takesFence:
		return fmt.Sprintf("takes the fence in the database under epoch %d", n.epoch)
	case raises:
		return fmt.Sprintf("finds epoch %d in the database, and has epoch %d", t.from.fence, n.epoch)
	case commits:
		return "commits a transaction"
	case suspends:
		return "is suspended"
	case wakes:
		return "wakes up"
	case proves:
		return "repeats the renewal with the proof" + t.past(i)
	}
	return "hears that it has to wait"
}

// past says that a node acts after its hard stop.
func (t telling) past(i int) string {
	if t.from.node[i].window > 0 {
		return ""
	}
	return " although H has passed"
}

// executed tells that Redis executes a request, and how the node reacts to an answer that it reads at once.
func (t telling) executed(p LeaseProtocol, s Step[Lease]) string {
	q := t.from.net[s.Detail-1]
	i := q.owner.node()
	word := map[kind]string{acquire: "acquire", renew: "renewal", release: "release"}[q.kind]
	if q.late {
		word = "late " + word
	}
	text := fmt.Sprintf("Redis executes the %s of %s: %s.", word, t.name(i), t.effect(q))
	switch s.Act {
	case handles, hearsHeld, hearsWait:
	case handlesTwice:
		text += " The same request is on its way once more."
	case hearsLost:
		text += " " + t.name(i) + " hears it and stops."
	case timesOut:
		text += " " + t.name(i) + " gives up, because H has passed."
	default:
		text += " " + t.name(i) + " " + t.action(p, i, s.Act) + "."
	}
	return text
}

func (t telling) effect(q request) string {
	was, is := t.from.redis, t.to.redis
	switch {
	case q.kind == release && was.lock != 0 && is.lock == 0:
		return "the lock is free"
	case q.kind == release:
		return "nothing changes"
	case q.kind == acquire && t.to.spent.Terms > t.from.spent.Terms:
		return fmt.Sprintf("%s has the lock for %d ticks, epoch %d", t.name(q.owner.node()), is.lease, is.epoch)
	case q.kind == renew && is.lock == q.owner && is.confirmed && (was.lock != q.owner || !was.confirmed):
		return fmt.Sprintf("the lock is put back for %d ticks, epoch %d", is.lease, is.epoch)
	case q.kind == renew && !is.confirmed && is.proof:
		return "it asks for a proof, because the incarnation is another one"
	case is.lock == q.owner:
		return fmt.Sprintf("the lease lasts %d ticks", is.lease)
	case is.lock != 0:
		return t.name(is.lock.node()) + " holds the lock"
	case q.kind == renew:
		return "the lock is lost"
	}
	return fmt.Sprintf("no node may win for %d ticks, a quarantine", is.left)
}

// ended lists the leases, windows and quarantines that end with a tick.
func (t telling) ended(p LeaseProtocol) string {
	var text strings.Builder
	if t.from.redis.lock != 0 && t.to.redis.lock == 0 {
		text.WriteString(" The lease of " + t.name(t.from.redis.lock.node()) + " ends.")
	}
	for i := range p.Nodes {
		if t.from.node[i].window > 0 && t.to.node[i].window == 0 {
			text.WriteString(" The trust window of " + t.name(i) + " ends (H).")
		}
	}
	if t.from.redis.left > 0 && t.to.redis.left == 0 {
		text.WriteString(" The quarantine ends.")
	}
	return text.String()
}
