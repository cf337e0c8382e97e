package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
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

// overview is what the first page shows: every judgement and every wording is made here,
// so that the template only places them.
type overview struct {
	Known       bool // false: nothing has been read yet, so that an empty list says nothing
	Leader      leaderView
	First       []problem // what is to be seen to before all else
	Then        []problem // and what else there is
	Verdicts    []verdict
	Running     []runningView
	MoreRunning string // how many more run
	Locks       []lockView
	Stores      []storeView
	Nodes       []nodeView
	Jobs        []jobView
	Filter      filterView
	Dense       bool   // many jobs: a line each
	MoreJobs    string // of how many jobs those are; empty: of all
	AllJobs     string // where all of them are shown
	Terms       timelineView
	Events      []eventView
	AllOff      bool // all jobs are paused
}

// lockView is an election of its own for some of the jobs.
type lockView struct {
	Tone               tone
	Key, Leader, Epoch string
	Held               instant
	Lease, Note        string
}

func newLockView(s diagnose.Snapshot, l diagnose.Lock, now time.Time) lockView {
	v := lockView{Tone: warn, Key: l.Key, Leader: "nobody", Note: cmp.Or(sentence(l.Vacancy), "The lock is free.")}
	if over := s.HandedOver(l.Key); over != nil && s.Paused == nil {
		v.Tone, v.Leader, v.Note = busy, "handing over", handedOver(over)
	}
	if l.Leader == nil {
		return v
	}
	v.Lease, v.Note = text.Span(l.Leader.LeaseLeft.Duration()), ""
	if l.Leader.Ending != "" {
		v.Note = "It hands over the lead, and waits for " + clip(l.Leader.Ending) + "."
	}
	if l.Leader.Foreign {
		v.Tone, v.Leader, v.Note = bad, "another program", "Its jobs do not run until that program lets go."
		return v
	}
	v.Tone, v.Leader, v.Epoch, v.Held = good, cmp.Or(l.Leader.NodeID, "an unnamed node"), epoch(l.Leader.Epoch),
		elapsed(l.Leader.Since, now)
	return v
}

// storeView is a Redis in which some jobs have their data.
type storeView struct {
	Tone                           tone
	Name, State, Error, Host, Jobs string
	Since                          instant
}

func newStoreView(of diagnose.Store, jobs []diagnose.Job, now time.Time) storeView {
	v := storeView{Tone: good, Name: of.Name, State: "answers", Host: of.Host, Since: elapsed(of.Since, now)}
	if !of.OK {
		v.Tone, v.State, v.Error = bad, "does not answer", clip(visible(of.Error))
	}
	var readers []diagnose.Job
	for _, j := range jobs {
		if j.Store == of.Name {
			readers = append(readers, j)
		}
	}
	v.Jobs = namesOf(readers)
	return v
}

type eventView struct {
	At                           instant
	Tone                         tone
	Event, NodeID, Epoch, Reason string
	Lock                         string // "": the node's own, or the only one
}

// eventsOnFront is how many events the first page shows; the timeline has all.
const eventsOnFront = 6

// lanesOnFront is how many locks the first page draws, and lanesOnTimeline the timeline.
const lanesOnFront, lanesOnTimeline = 6, 40

// errorsOnFront is how many jobs show their last error, and errorOnFront how much of it:
// where a database is away all jobs say the same. The page of a job has all.
const errorsOnFront, errorOnFront = 25, 200

// denseFrom is from how many jobs on each is one line.
const denseFrom = 12

// newOverview is the first page of s, with the jobs that a filter picks.
func newOverview(s diagnose.Snapshot, known bool, filter jobFilter, extra extras) overview {
	now := s.Clock()
	v := overview{
		Known: known, Leader: newLeaderView(s, known, now), Terms: newTimeline(s, extra.others, "", lanesOnFront, now),
		Verdicts: []verdict{dataVerdict(s), jobsVerdict(s, known), redisVerdict(s, now), nodesVerdict(s, known)},
		Events:   newEvents(s.Events[:min(len(s.Events), eventsOnFront)], now),
	}
	v.Then = v.problems(s, extra.letters)
	if v.Leader.Tone == good || s.Error != "" && !s.Redis.OK { // else it is the leader that is to be seen to
		grave := 0
		for grave < len(v.Then) && v.Then[grave].Tone == bad {
			grave++
		}
		v.First, v.Then = v.Then[:grave], v.Then[grave:]
	}
	for _, l := range s.Locks {
		v.Locks = append(v.Locks, newLockView(s, l, now))
	}
	for _, of := range s.Stores {
		v.Stores = append(v.Stores, newStoreView(of, s.Jobs, now))
	}
	for _, n := range s.Nodes {
		v.Nodes = append(v.Nodes, newNodeView(n, s, now))
	}
	for _, j := range s.Jobs {
		v.AllOff = v.AllOff || j.Paused != nil && j.Paused.All
		for _, r := range runsOf(j) {
			v.Running = append(v.Running, newRunningView(j, r, now))
		}
	}
	if more := len(v.Running) - manyRunning; more > 0 {
		v.Running, v.MoreRunning = v.Running[:manyRunning], text.Number(more)+" more"
	}
	v.addJobs(s, known, filter, extra, now)
	return v
}

// addJobs adds the rows of the jobs that a filter picks.
func (v *overview) addJobs(s diagnose.Snapshot, known bool, filter jobFilter, extra extras, now time.Time) {
	rates := ratesNow(extra.samples, now)
	shown, all := filter.chosen(s.Jobs, rates, now)
	v.Filter, v.Dense = newFilterView(filter, s.Jobs, now), len(shown) >= denseFrom
	if len(shown) < all {
		filter.All = true
		v.MoreJobs = fmt.Sprintf("%d of %s jobs: what fails or is late, is paused or runs comes first.", manyJobs, text.Number(all))
		if filter.Sort != "" {
			v.MoreJobs = fmt.Sprintf("%d of %s jobs.", manyJobs, text.Number(all))
		}
		v.AllJobs = filter.url()
	}
	if len(shown) == 0 && len(s.Jobs) > 0 {
		v.Filter.None = "None of " + text.Count(len(s.Jobs), "job") + " is like that."
	}
	errors := 0
	for _, j := range shown {
		job := newJobView(j, now)
		if j.Lock != s.LockKey {
			job.Lock = j.Lock
		}
		job.Next = nextRun(s, j, known, job.Next)
		if job.Last != nil && job.Last.Error != "" {
			if errors++; errors > errorsOnFront {
				job.Last.Error = ""
			} else {
				job.Last.Error = text.Clip(job.Last.Error, errorOnFront)
			}
		}
		job.Spark = sparkline(extra.samples, j.Name, now)
		if rate, ok := rates[j.Name]; ok {
			job.Rate = perSecond(rate)
		}
		job.Strip = newStrip(extra.recent[j.Name])
		v.Jobs = append(v.Jobs, job)
	}
}

// nextRun is when a job is due: while no node leads under its lock no time is promised.
func nextRun(s diagnose.Snapshot, j diagnose.Job, known bool, due instant) instant {
	leader := s.LeaderOf(j)
	switch {
	case leader != nil && !leader.Foreign:
		return due
	case s.Paused != nil && leader == nil:
		return instant{Near: "after resume"}
	case known && s.Error == "":
		return instant{Near: "once a node leads"}
	}
	return due
}

func newEvents(events []diagnose.Event, now time.Time) (views []eventView) {
	for _, e := range events {
		views = append(views, eventView{
			At: at(e.At.UTC(), now), Tone: eventTone(e.Event), Event: eventWords(e.Event),
			NodeID: e.NodeID, Epoch: epoch(e.Epoch), Reason: clip(e.Why()),
		})
	}
	return views
}

// eventsOfAll are the events of all locks, the newest first.
func eventsOfAll(s diagnose.Snapshot, others map[string][]diagnose.Event, now time.Time) []eventView {
	views := newEvents(s.Events, now)
	for _, l := range s.Locks {
		for _, v := range newEvents(others[l.Key], now) {
			v.Lock = l.Key
			views = append(views, v)
		}
	}
	slices.SortStableFunc(views, func(a, b eventView) int { return cmp.Compare(b.At.MS, a.At.MS) })
	return views[:min(len(views), 2*eventsOnTimeline)]
}

// eventWords is what the node did, or what befell it: it is not the node that is quarantined.
func eventWords(event string) string {
	switch event {
	case "won":
		return "took the lead"
	case "lost", "expired":
		return "lost the lead"
	case "released":
		return "gave up the lead"
	case "quarantined":
		return "began a quarantine"
	}
	return words(event)
}

func eventTone(event string) tone {
	switch event {
	case "won":
		return good
	case "lost", "expired", "stream_refused":
		return bad
	case "quarantined", "restored", "paused", "pass_began":
		return warn
	default:
		return idle
	}
}

// clockShown is from when on a clock's offset is more than the way to Redis and back.
const clockShown = 100 * time.Millisecond

// seen is when a node last reported, to the second. Up to SeenWithin it is alive as
// far as can be known, and a number of seconds would look like a fault.
func seen(n diagnose.Node, s diagnose.Snapshot, now time.Time) instant {
	i := at(now.Add(-(n.LastSeenAgo + s.Age).Duration()).Round(time.Second).UTC(), now)
	switch ago := (n.LastSeenAgo + s.Age).Duration(); {
	case n.ID == s.NodeID && !n.Stale && n.Twin == "":
		return instant{Near: "now"} // it shows this
	case ago >= 0 && ago <= diagnose.SeenWithin && !n.Silent():
		i.Near = "within " + text.Span(diagnose.SeenWithin)
	}
	return i
}

// elapsed is how long something has lasted.
func elapsed(since, now time.Time) instant {
	i := at(since.UTC(), now)
	i.Near = text.Span(wholeSeconds(now.Sub(since)))
	return i
}

// epoch is the number as logs write it, so that it can be searched for.
func epoch(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// severity is how alarming a tone is.
func severity(t tone) int { return map[tone]int{good: 1, warn: 2, bad: 3}[t] }

// worseOf is the more alarming of two tones.
func worseOf(a, b tone) tone {
	if severity(a) < severity(b) {
		return b
	}
	return a
}
