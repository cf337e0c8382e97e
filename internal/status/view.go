package status

import (
	"cmp"
	"fmt"
	"time"
)

// tone is how a thing is to be taken; the style sheet gives it a colour and the
// text beside it says the same in words.
type tone string

const (
	good tone = "good"
	warn tone = "warn"
	bad  tone = "bad"
	busy tone = "busy"
	idle tone = "idle"
)

// view is what the template shows: every judgement and every wording is made here,
// so that the template only places them.
type view struct {
	Build    string // identifies style sheet and script
	Title    string
	Announce string // read out by screen readers when it changes
	Alarm    string // why the page is not up to date
	Known    bool   // false: nothing has been read yet, so that an empty list says nothing
	NodeID   string
	Version  string
	LockKey  string
	Role     string
	Now      instant
	Leader   leaderView
	Verdicts []verdict
	Locks    []lockView
	Nodes    []nodeView
	Jobs     []jobView
	MoreJobs string // of how many jobs those are; empty: of all
	Events   []eventView
}

type leaderView struct {
	Tone     tone
	Name     string // set apart from the headline around it
	Headline string
	Note     string
	Here     bool // this node leads
	Epoch    string
	Owner    string
	Since    instant
	Held     string // "2 h 3 min"
	Lease    *leaseView
}

type leaseView struct {
	Tone        tone
	Left, TTL   string
	LeftMS, Max int64
}

// lockView is an election of its own for some of the jobs.
type lockView struct {
	Tone                     tone
	Key, Leader, Epoch, Held string
	Lease, Note              string
}

func newLockView(l Lock, now time.Time) lockView {
	v := lockView{Tone: warn, Key: l.Key, Leader: "nobody", Note: or(sentence(l.Vacancy), "The lock is free.")}
	if l.Leader == nil {
		return v
	}
	v.Lease, v.Note = span(ms(max(l.Leader.LeaseLeftMS, 0))), ""
	if l.Leader.Foreign {
		v.Tone, v.Leader, v.Note = bad, "another program", "Its jobs do not run until that program lets go."
		return v
	}
	v.Tone, v.Leader, v.Epoch, v.Held = good, or(l.Leader.NodeID, "an unnamed node"), epoch(l.Leader.Epoch), span(wholeSeconds(now.Sub(l.Leader.Since)))
	return v
}

// verdict answers one question in one word.
type verdict struct {
	Tone     tone
	Question string
	Answer   string
	Note     string
}

type nodeView struct {
	ID, State, Version, Config, Address, Seen string
	Priority, Aside                           string
	Tone                                      tone
	Here, Leads, OtherVersion, OtherConfig    bool
}

type eventView struct {
	At                           instant
	Tone                         tone
	Event, NodeID, Epoch, Reason string
}

// newView is the page's view of s; all says to show every job, however many.
func newView(s Snapshot, known, all bool, build string) view {
	now := s.Now.Add(time.Duration(s.AgeMS) * time.Millisecond)
	if s.Now.IsZero() {
		now = time.Now()
	}
	v := view{
		Build: build, Known: known, NodeID: or(s.NodeID, "unnamed node"), Version: s.Version, LockKey: s.LockKey, Role: string(s.Role),
		Now: at(now.UTC(), now), Leader: newLeaderView(s, known, now),
	}
	if s.Error != "" {
		v.Alarm = clip(s.Error)
		if known {
			v.Alarm = "What you see is " + span(time.Duration(s.AgeMS)*time.Millisecond) + " old: " + v.Alarm
		}
	}
	headline := v.Leader.Name + v.Leader.Headline
	v.Title, v.Announce = headline, headline
	if v.Leader.Epoch != "" {
		v.Announce += ", epoch " + v.Leader.Epoch
	}
	v.Verdicts = []verdict{dataVerdict(s), jobsVerdict(s, known), redisVerdict(s, now), nodesVerdict(s, known)}
	for _, l := range s.Locks {
		v.Locks = append(v.Locks, newLockView(l, now))
	}
	for _, n := range s.Nodes {
		v.Nodes = append(v.Nodes, newNodeView(n, s))
	}
	shown := s.Jobs
	if !all && len(shown) > manyJobs {
		shown = worstFirst(shown)[:manyJobs]
		v.MoreJobs = fmt.Sprintf("%d of %s jobs: what fails or is late, is paused or runs comes first.", manyJobs, count(int64(len(s.Jobs))))
	}
	for _, j := range shown {
		job := newJobView(j, now)
		if j.Lock != s.LockKey {
			job.Lock = j.Lock
		}
		if s.Paused != nil && s.Leader == nil {
			job.Next = instant{Near: "after resume"}
		}
		v.Jobs = append(v.Jobs, job)
	}
	for _, e := range s.Events {
		v.Events = append(v.Events, eventView{
			At: at(e.At.UTC(), now), Tone: eventTone(e.Event), Event: eventWords(e.Event),
			NodeID: e.NodeID, Epoch: epoch(e.Epoch), Reason: clip(e.Reason),
		})
	}
	return v
}

func newLeaderView(s Snapshot, known bool, now time.Time) leaderView {
	switch l := s.Leader; {
	case !known:
		return leaderView{Tone: warn, Headline: "Leader not known yet", Note: "This node has not been able to read the election's state."}
	case l == nil && s.Error != "":
		return leaderView{Tone: warn, Headline: "Nobody led when last seen", Note: "A node may lead by now."}
	case l == nil && s.Paused != nil:
		return leaderView{Tone: warn, Headline: "Paused: nobody leads", Since: at(s.Paused.Since.UTC(), now), Held: span(wholeSeconds(now.Sub(s.Paused.Since))),
			Note: "Paused " + clip(s.Paused.Reason) + ". No job runs until baton resume."}
	case l == nil:
		return leaderView{Tone: warn, Headline: "Nobody leads", Note: or(sentence(s.Vacancy), "The lock is free: a standby takes it within moments.")}
	case l.Foreign:
		return leaderView{
			Tone: bad, Headline: "The lock is held by another program", Owner: l.Owner, Lease: newLeaseView(l, s.AgeMS),
			Note: fmt.Sprintf("No baton node wrote what is in %q. No job runs until that program lets go.", s.LockKey),
		}
	default:
		v := leaderView{
			Tone: good, Name: or(l.NodeID, "an unnamed node"), Headline: " leads", Here: l.NodeID == s.NodeID,
			Epoch: epoch(l.Epoch), Owner: l.Owner, Since: at(l.Since.UTC(), now), Lease: newLeaseView(l, s.AgeMS),
		}
		if l.Since.IsZero() {
			v.Since = instant{}
		} else {
			v.Held = span(wholeSeconds(now.Sub(l.Since)))
		}
		if s.Paused != nil {
			v.Tone, v.Note = warn, "Paused "+clip(s.Paused.Reason)+". It is about to step down."
		}
		if s.Error != "" {
			v.Tone, v.Headline, v.Note = warn, " led when last seen", "Another node may lead by now."
		}
		return v
	}
}

// newLeaseView counts the lease down by the Snapshot's age: it goes on ending while
// nobody can be asked.
func newLeaseView(l *Leader, ageMS int64) *leaseView {
	if l.LeaseLeftMS < 0 || l.TTLMS <= 0 {
		return nil
	}
	left := min(max(l.LeaseLeftMS-ageMS, 0), l.TTLMS)
	v := &leaseView{Tone: good, LeftMS: left, Max: l.TTLMS, Left: span(ms(left)), TTL: span(ms(l.TTLMS))}
	switch {
	case left*6 < l.TTLMS:
		v.Tone = bad
	case left*5 < l.TTLMS*2:
		v.Tone = warn
	}
	return v
}

func newNodeView(n Node, s Snapshot) nodeView {
	v := nodeView{
		ID: n.ID, State: words(n.State), Version: n.Version, Config: n.ConfigHash, Address: n.Address, Tone: idle,
		Seen: near(-ms(n.LastSeenMSAgo + s.AgeMS)), Here: n.ID == s.NodeID,
		Leads: s.Error == "" && s.Leader != nil && !s.Leader.Foreign && s.Leader.NodeID == n.ID,
	}
	if n.Priority != 0 {
		v.Priority = fmt.Sprintf("priority %d", n.Priority)
	}
	if n.Aside != "" {
		v.Aside = "Stands aside " + clip(n.Aside)
	}
	const shortHash = 8
	if len(v.Config) > shortHash {
		v.Config = v.Config[:shortHash]
	}
	switch {
	case n.Stale:
		v.Tone, v.State = bad, "silent"
	case v.Leads:
		v.Tone = good
	case n.Observer:
		v.State = "observer"
	case n.State == string(RoleStandby):
		v.Tone = busy
	}
	for _, other := range s.Nodes {
		if s.Leader != nil && other.ID == s.Leader.NodeID {
			v.OtherVersion = n.Version != other.Version
			v.OtherConfig = n.ConfigHash != other.ConfigHash
		}
	}
	return v
}

// eventWords is what the node did: it is not the node that is quarantined.
func eventWords(event string) string {
	if event == "quarantined" {
		return "began a quarantine"
	}
	return words(event)
}

func eventTone(event string) tone {
	switch event {
	case "won":
		return good
	case "lost", "expired":
		return bad
	case "quarantined", "restored", "paused":
		return warn
	default:
		return idle
	}
}

// epoch is the number as logs write it, so that it can be searched for.
func epoch(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// worst returns the more alarming of two tones.
func worst(a, b tone) tone {
	rank := map[tone]int{idle: 0, busy: 0, good: 1, warn: 2, bad: 3}
	if cmp.Compare(rank[a], rank[b]) < 0 {
		return b
	}
	return a
}
