package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// tone grades a thing from good to bad. The style sheet gives it a colour, and the
// text beside it says the same in words.
type tone string

const (
	good tone = "good"
	warn tone = "warn"
	bad  tone = "bad"
	busy tone = "busy"
	idle tone = "idle"
)

// overview has the content of the first page, with every judgement and every wording. The
// template only places them.
type overview struct {
	Known       bool // false: the state has never been read, so an empty list means nothing
	Leader      leaderView
	First       []problem // the most urgent problems
	Then        []problem // the other problems
	Verdicts    []verdict
	Running     []runningView
	MoreRunning string // the number of further running jobs
	Locks       []lockView
	Stores      []storeView
	Nodes       []nodeView
	Jobs        []jobView
	Filter      filterView
	Dense       bool   // many jobs: one line for each
	MoreJobs    string // says that the list is cut; empty: it is whole
	AllJobs     string // the address that shows all jobs
	Terms       timelineView
	Events      []eventView
	AllOff      bool // all jobs are paused
}

// lockView is a separate election for some of the jobs.
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

// storeView is a Redis with the data of some jobs.
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
	Lock                         string // "": the node's own lock, or the only one
}

// eventsOnFront bounds the events on the first page; the timeline has all.
const eventsOnFront = 6

// lanesOnFront bounds the locks that the first page draws, and lanesOnTimeline those of the timeline.
const lanesOnFront, lanesOnTimeline = 6, 40

// errorsOnFront bounds the jobs that show their last error, and errorOnFront its bytes: while a
// database does not answer, all jobs have the same error. The page of a job has the whole error.
const errorsOnFront, errorOnFront = 25, 200

// denseFrom is the least number of jobs for a dense list, one line for each.
const denseFrom = 12

// newOverview returns the first page of s, with the jobs that a filter picks.
func newOverview(s diagnose.Snapshot, known bool, filter jobFilter, extra extras) overview {
	now := s.Clock()
	v := overview{
		Known: known, Leader: newLeaderView(s, known, now), Terms: newTimeline(s, extra.others, "", lanesOnFront, now),
		Verdicts: []verdict{dataVerdict(s), jobsVerdict(s, known), redisVerdict(s, now), nodesVerdict(s, known)},
		Events:   newEvents(s.Events[:min(len(s.Events), eventsOnFront)], now),
	}
	v.Then = v.problems(s, extra.letters)
	if v.Leader.Tone == good || s.Error != "" && !s.Redis.OK { // else the leader is the most urgent problem
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

// nextRun returns the time of a job's next run. While no node leads under its lock, it promises no time.
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

// eventsOfAll returns the events of all locks, the newest first.
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

// eventWords describes an event as an act of the node: it "began a quarantine", since the lock is quarantined and not the node.
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

// clockShown is the least offset of a clock to show. A smaller one may come from the round trip to Redis.
const clockShown = 100 * time.Millisecond

// seen returns the time of a node's last report, to the second. Up to SeenWithin the node counts
// as alive, and a number of seconds would look like a fault.
func seen(n diagnose.Node, s diagnose.Snapshot, now time.Time) instant {
	i := at(now.Add(-(n.LastSeenAgo + s.Age).Duration()).Round(time.Second).UTC(), now)
	switch ago := (n.LastSeenAgo + s.Age).Duration(); {
	case n.ID == s.NodeID && !n.Stale && n.Twin == "":
		return instant{Near: "now"} // this node serves the page
	case ago >= 0 && ago <= diagnose.SeenWithin && !n.Silent():
		i.Near = "within " + text.Span(diagnose.SeenWithin)
	}
	return i
}

// elapsed returns the time since a moment as an instant.
func elapsed(since, now time.Time) instant {
	i := at(since.UTC(), now)
	i.Near = text.Span(wholeSeconds(now.Sub(since)))
	return i
}

// epoch formats an epoch as the log does, so that a search finds it.
func epoch(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// severity ranks tones; the worst is highest.
func severity(t tone) int { return map[tone]int{good: 1, warn: 2, bad: 3}[t] }

// worseOf returns the worse of two tones.
func worseOf(a, b tone) tone {
	if severity(a) < severity(b) {
		return b
	}
	return a
}
