package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// tone says how good or bad something is. The style sheet gives each tone a colour, and the text beside the colour says the same.
type tone string

const (
	good tone = "good"
	warn tone = "warn"
	bad  tone = "bad"
	busy tone = "busy"
	idle tone = "idle"
)

// overview contains the content of the start page, with all ratings and texts. The template only arranges them.
type overview struct {
	Known       bool // false if the state has never been read, so that an empty list means nothing
	Leader      leaderView
	First       []problem // the most urgent problems
	Then        []problem // the other problems
	Verdicts    []verdict
	Running     []runningView
	MoreRunning string // the number of further jobs that are running
	Locks       []lockView
	Stores      []storeView
	Nodes       []nodeView
	Jobs        []jobView
	Filter      filterView
	Dense       bool   // there are many jobs, so each job has only one line
	MoreJobs    string // says that the list is cut; empty if the list is complete
	AllJobs     string // the address of the page with all jobs
	Terms       timelineView
	Events      []eventView
	AllOff      bool // all jobs are paused
}

// lockView shows a separate lock that some jobs use, and the leader under that lock.
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
		v.Tone, v.Leader, v.Note = bad, "another program", "The jobs of this lock do not run until that program releases it."
		return v
	}
	v.Tone, v.Leader, v.Epoch, v.Held = good, cmp.Or(l.Leader.NodeID, "an unnamed node"), epoch(l.Leader.Epoch),
		elapsed(l.Leader.Since, now)
	return v
}

// storeView shows a separate Redis that contains the data of some jobs.
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
	Lock                         string // "" for the node's own lock, or if there is only one lock
}

// eventsOnFront is the maximum number of events on the start page. The timeline shows all events.
const eventsOnFront = 6

// lanesOnFront is the maximum number of locks on the start page, and lanesOnTimeline is the maximum number of locks on the timeline.
const lanesOnFront, lanesOnTimeline = 6, 40

// errorsOnFront is the maximum number of jobs on the start page that show their last error. errorOnFront is the maximum length of such an
// error in bytes. The limits exist because all jobs have the same error while a database does not answer. The page of a job shows the whole
// error.
const errorsOnFront, errorOnFront = 25, 200

// denseFrom is the minimum number of jobs for a dense list of jobs, in which each job has one line.
const denseFrom = 12

// newOverview returns the content of the start page for the state s, with the jobs that the filter selects.
func newOverview(s diagnose.Snapshot, known bool, filter jobFilter, extra extras) overview {
	now := s.Clock()
	v := overview{
		Known: known, Leader: newLeaderView(s, known, now), Terms: newTimeline(s, extra.others, "", lanesOnFront, now),
		Verdicts: []verdict{dataVerdict(s), jobsVerdict(s, known), redisVerdict(s, now), nodesVerdict(s, known)},
		Events:   newEvents(s.Events[:min(len(s.Events), eventsOnFront)], now),
	}
	v.Then = v.problems(s, extra.letters)
	if v.Leader.Tone == good || s.Error != "" && !s.Redis.OK { // otherwise the leader is the most urgent problem
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

// addJobs fills the list of jobs with the jobs that the filter selects.
func (v *overview) addJobs(s diagnose.Snapshot, known bool, filter jobFilter, extra extras, now time.Time) {
	rates := ratesNow(extra.samples, now)
	shown, all := filter.chosen(s.Jobs, rates, now)
	v.Filter, v.Dense = newFilterView(filter, s.Jobs, now), len(shown) >= denseFrom
	if len(shown) < all {
		filter.All = true
		v.MoreJobs = fmt.Sprintf("%d of %s jobs. Jobs that fail, are late, are paused or run come first.", manyJobs, text.Number(all))
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

// nextRun returns the time of a job's next run. It returns no time while no node leads under the job's lock.
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

// eventsOfAll returns the events of all locks, the newest event first.
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

// eventWords describes an event as an action of the node. For example, the event "quarantined" becomes "began a quarantine", because the
// lock is in quarantine, not the node.
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
	case "quarantined", "restored", "paused", "pass_began", "rows_accepted", "row_undeleted":
		return warn
	default:
		return idle
	}
}

// clockShown is the smallest offset of a node's clock that is shown. A smaller offset may come from the round trip to Redis.
const clockShown = 100 * time.Millisecond

// seen returns the time of a node's last report, without fractions of seconds. For a report that is not older than SeenWithin, it does not
// return the number of seconds. The node then counts as alive, and the number would look like a problem.
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

// elapsed returns the time since a point in time, as an instant.
func elapsed(since, now time.Time) instant {
	i := at(since.UTC(), now)
	i.Near = text.Span(wholeSeconds(now.Sub(since)))
	return i
}

// epoch formats an epoch like the log does, so that a search for the text finds the lines of the log. It returns "" for 0.
func epoch(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// severity returns the rank of a tone. The worst tone has the highest rank.
func severity(t tone) int { return map[tone]int{good: 1, warn: 2, bad: 3}[t] }

// worseOf returns the worse of two tones.
func worseOf(a, b tone) tone {
	if severity(a) < severity(b) {
		return b
	}
	return a
}
