package page

import (
	"cmp"
	"fmt"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

type leaderView struct {
	Tone     tone
	Name     string // shown separately from the headline around it
	Headline string
	Note     string
	Here     bool // this node leads
	Epoch    string
	Owner    string
	Since    instant
	Held     instant // Near is a text such as "2 h 3 min"
	Lease    *leaseView
	Pauses   bool   // an operator has paused the election
	Next     string // the advice; "" if there is no problem
	Command  string // the command for the advice; "" if there is none
}

type leaseView struct {
	Tone        tone
	Left, TTL   string
	LeftMS, Max int64
	Until       int64 // Unix time in milliseconds, by the node's clock
}

func newLeaderView(s diagnose.Snapshot, known bool, now time.Time) leaderView {
	switch l := s.Leader; {
	case !known:
		v := leaderView{Tone: warn, Headline: "Leader not known yet", Note: "This node has not been able to read the election’s state."}
		if s.Redis.OK { // otherwise the page first names the problem with Redis
			v.Next = "Open the page of another node."
		}
		return v
	case s.LastLeader != nil:
		v := leaderView{Tone: warn, Headline: "Leader not known", Lease: newLeaseView(s.LastLeader, s.Age, now),
			Note: sentence(s.Vacancy)}
		if s.Redis.OK { // otherwise the page first names the problem with Redis
			v.Next = "Open the page of another node, and see whether this node reaches Redis."
		}
		return v
	case l == nil && s.Error != "":
		return leaderView{Tone: warn, Headline: "No node led when last seen", Note: "A node may lead by now.",
			Next: "Open the page of another node, and see whether this node reaches Redis."}
	case l == nil && s.Paused != nil:
		return leaderView{Tone: warn, Headline: "Paused: no node leads", Since: at(s.Paused.Since.UTC(), now),
			Held: elapsed(s.Paused.Since, now), Pauses: true,
			Note: "Paused " + clip(s.Paused.Reason) + ". No job runs.", Next: "Resume when the work is done:", Command: "baton resume"}
	case l == nil && s.HandedOver("") != nil:
		return leaderView{Tone: busy, Headline: "Handing over", Note: handedOver(s.HandedOver(""))}
	case l == nil:
		v := leaderView{Tone: bad, Headline: "No node leads",
			Note: cmp.Or(sentence(s.Vacancy), "The lock is free: a standby takes it within moments.")}
		v.Next, v.Command = vacantNext(s)
		return v
	case l.Foreign:
		return leaderView{
			Tone: bad, Headline: "The lock is held by another program", Owner: l.Owner, Lease: newLeaseView(l, s.Age, now),
			Note: fmt.Sprintf("No baton node wrote the value of %q. No job runs until that program releases the lock.", s.LockKey),
			Next: "Find out which program it is by the owner shown here, and stop it. For more, run", Command: "baton explain",
		}
	default:
		v := leaderView{
			Tone: good, Name: cmp.Or(l.NodeID, "an unnamed node"), Headline: " leads", Here: l.NodeID == s.NodeID,
			Epoch: epoch(l.Epoch), Owner: l.Owner, Since: at(l.Since.UTC(), now), Lease: newLeaseView(l, s.Age, now),
		}
		if l.Since.IsZero() {
			v.Since = instant{}
		} else {
			v.Held = elapsed(l.Since, now)
		}
		if l.Ending != "" {
			v.Note = "It hands over the lead, and waits for " + clip(l.Ending) + "."
		}
		if s.Paused != nil {
			v.Tone, v.Pauses, v.Note = warn, true, "Paused "+clip(s.Paused.Reason)+". It is about to step down."
		}
		if s.Error != "" {
			v.Tone, v.Headline, v.Note = warn, " led when last seen", "Another node may lead by now."
			if s.Redis.OK { // otherwise the page first names the problem with Redis
				v.Next = "Open the page of another node, and see whether this node reaches Redis."
			}
		}
		return v
	}
}

// newLeaseView shows how much of the leader's lease is left. It subtracts the age of the Snapshot, because the lease continues to run out
// even if Redis does not answer.
func newLeaseView(l *diagnose.Leader, age text.Seconds, now time.Time) *leaseView {
	if l.LeaseLeft < 0 || l.TTL <= 0 {
		return nil
	}
	left := min(max(l.LeaseLeft-age, 0), l.TTL)
	v := &leaseView{Tone: good, LeftMS: left.Milliseconds(), Max: l.TTL.Milliseconds(),
		Left: text.Span(left.Duration()), TTL: text.Span(l.TTL.Duration()), Until: now.Add(left.Duration()).UnixMilli()}
	switch {
	case left*6 < l.TTL:
		v.Tone = bad
	case left*5 < l.TTL*2:
		v.Tone = warn
	}
	return v
}

// handedOver returns a text that names the node that gave up the lead.
func handedOver(e *diagnose.Event) string {
	return sentence(cmp.Or(e.NodeID, "an unnamed node") + " has handed over the lead: the next leader takes it within seconds")
}

// vacantNext returns advice and a command for the user while no node leads.
func vacantNext(s diagnose.Snapshot) (next, command string) {
	if s.Count().MayLead > 0 {
		return "Wait some seconds. If it stays so, ask why:", "baton explain"
	}
	return "Start a node:", "systemctl start baton"
}
