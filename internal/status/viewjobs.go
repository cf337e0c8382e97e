package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// defaultLateAfter is the lag from which a job is late unless it says otherwise.
const defaultLateAfter = 60 * time.Second

// manyJobs is how many the page shows unasked. It is fetched and compared every second:
// a few thousand rows would keep a browser busy with nothing else, and nobody reads them.
const manyJobs = 100

type jobView struct {
	Name, Target, Lock    string
	Words, Schedule, Zone string
	Next                  instant
	Paused                string // "by alice: upgrade, for 5 min"
	Running               string // "for 12 s on db1"
	SoFar                 string // "1,200 rows of 5,000 changes"
	Last                  *runView
	Failures              string // "3 failures in a row"
	Backlog, Lag          string
	LagTone               tone
}

type runView struct {
	Tone                        tone
	State, Summary, Dead, Error string
	Started                     instant
}

func newJobView(j Job, now time.Time) jobView {
	v := jobView{
		Name: j.Name, Target: j.Target, Words: or(j.ScheduleWords, j.Schedule), Schedule: j.Schedule, Zone: j.TimeZone,
		Next: at(j.NextRun, now), Last: newRunView(j.LastRun, now),
	}
	if v.Words == v.Schedule {
		v.Schedule = "" // once is enough
	}
	if strings.HasPrefix(j.Schedule, "@every") || strings.HasPrefix(j.Schedule, "@always") || strings.Contains(v.Words, v.Zone) {
		v.Zone = "" // the same in every zone, or said already
	}
	if !j.NextRun.IsZero() && j.NextRun.Before(now) {
		v.Next.Near = "due"
	}
	if j.ConsecutiveFailures > 1 {
		v.Failures = fmt.Sprintf("%s failures in a row", count(int64(j.ConsecutiveFailures)))
	}
	if r := j.Running; r != nil {
		v.Running = "for " + span(wholeSeconds(now.Sub(r.Started))) + " on " + or(r.NodeID, "?")
		v.SoFar = soFar(*r)
	}
	if p := j.Paused; p != nil {
		v.Paused = clip(p.Reason) + ", for " + span(wholeSeconds(now.Sub(p.Since)))
	}
	if j.Backlog != nil {
		v.Backlog = count(*j.Backlog)
	}
	if lag, ok := lagOf(j); ok {
		v.Lag, v.LagTone = span(lag), idle
		if lag >= lateAfter(j) {
			v.LagTone = bad
		}
	}
	return v
}

// soFar is how far a run is that has told.
func soFar(r Run) string {
	switch {
	case r.Backlog != nil:
		return plural(r.Rows, "row") + " of " + plural(*r.Backlog, "change")
	case r.Batches > 0:
		return plural(r.Rows, "row") + " so far"
	}
	return ""
}

func newRunView(r *Run, now time.Time) *runView {
	if r == nil {
		return nil
	}
	v := &runView{
		Tone: runTone(r.State), State: words(r.State), Summary: "took " + span(ms(r.DurationMS)), Error: clip(r.Error),
	}
	if r.Rows > 0 {
		v.Summary = plural(r.Rows, "row") + " in " + span(ms(r.DurationMS))
	}
	if r.NodeID != "" {
		v.Summary += ", on " + r.NodeID
	}
	if r.Trigger != "schedule" && r.Trigger != "" { // the usual one says nothing
		v.Summary += ", " + words(r.Trigger)
	}
	if r.Dead > 0 {
		v.Dead = plural(r.Dead, "dead letter")
	}
	if !r.Started.IsZero() {
		v.Started = at(r.Started.UTC(), now)
	}
	return v
}

func runTone(state string) tone {
	switch state {
	case "succeeded":
		return good
	case "failed", "timed_out":
		return bad
	case "cancelled":
		return warn
	case "running":
		return busy
	default:
		return idle
	}
}

// worstFirst orders jobs by how much they concern an operator, and those of a kind as
// the configuration has them, so that rows keep their places.
func worstFirst(jobs []Job) []Job {
	rank := func(j Job) int {
		lag, measured := lagOf(j)
		switch {
		case failing(j), measured && lag >= lateAfter(j):
			return 0
		case j.Paused != nil:
			return 1
		case j.Running != nil:
			return 2
		}
		return 3
	}
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(rank(a), rank(b)) })
	return jobs
}

// failing: the last run that counts was not well.
func failing(j Job) bool {
	return j.LastRun != nil && (j.ConsecutiveFailures > 0 || runTone(j.LastRun.State) == bad)
}

func lagOf(j Job) (time.Duration, bool) {
	if j.LagSeconds == nil {
		return 0, false
	}
	return time.Duration(*j.LagSeconds * float64(time.Second)), true
}

func lateAfter(j Job) time.Duration {
	if j.LateAfterSeconds > 0 {
		return time.Duration(j.LateAfterSeconds * float64(time.Second))
	}
	return defaultLateAfter
}

// dataVerdict answers whether the database is behind Redis.
func dataVerdict(s Snapshot) verdict {
	v := verdict{Question: "Data", Tone: good, Answer: "Up to date"}
	var worst Job
	var lag time.Duration
	var waiting int64
	measured, late := false, 0
	for _, j := range s.Jobs {
		if j.Backlog != nil {
			waiting += *j.Backlog
		}
		d, ok := lagOf(j)
		if !ok {
			continue
		}
		if d >= lateAfter(j) {
			late++
		}
		if !measured || d > lag {
			worst, lag = j, d
		}
		measured = true
	}
	switch {
	case s.Error != "":
		v.Tone, v.Answer, v.Note = warn, "Not known", "the state could not be read"
	case len(s.Jobs) > 0 && !slices.ContainsFunc(s.Jobs, func(j Job) bool { return !j.Command }):
		v.Tone, v.Answer, v.Note = idle, "No flush", "all jobs run commands"
	case !measured:
		v.Tone, v.Answer, v.Note = idle, "Not measured", "no flush has reported its lag"
	case late > 0:
		v.Tone, v.Answer = bad, span(lag)+" late"
		v.Note = worst.Name
		if late > 1 {
			v.Note += fmt.Sprintf(" and %d more", late-1)
		}
		v.Note += "; " + plural(waiting, "change") + " waiting"
	default:
		v.Note = "at most " + span(lag) + " behind; " + plural(waiting, "change") + " waiting"
	}
	return v
}

// jobsVerdict answers whether the last runs were well.
func jobsVerdict(s Snapshot, known bool) verdict {
	var bads, paused []string
	running, ran := 0, 0
	for _, j := range s.Jobs {
		if j.Paused != nil {
			paused = append(paused, j.Name)
		}
		if j.Running != nil {
			running++
		}
		if j.LastRun != nil {
			ran++
		}
		if failing(j) {
			bads = append(bads, j.Name)
		}
	}
	v := verdict{Question: "Jobs", Tone: good, Answer: fmt.Sprintf("All %d well", len(s.Jobs)), Note: fmt.Sprintf("%d running now", running)}
	switch {
	case !known:
		v.Tone, v.Answer, v.Note = warn, "Not known", "the state could not be read"
	case len(s.Jobs) == 0:
		v.Tone, v.Answer, v.Note = idle, "None", "no job is configured on this node"
	case len(bads) > 0:
		v.Tone, v.Answer, v.Note = bad, fmt.Sprintf("%d of %d failing", len(bads), len(s.Jobs)), some(bads)
	case len(paused) > 0:
		v.Tone, v.Answer, v.Note = warn, fmt.Sprintf("%d of %d paused", len(paused), len(s.Jobs)), some(paused)
	case ran == 0 && running == 0:
		v.Tone, v.Answer = idle, "None has run yet"
	case len(s.Jobs) == 1:
		v.Answer = "Well"
	}
	if s.Error != "" && known && len(s.Jobs) > 0 {
		v.Tone, v.Note = worst(v.Tone, warn), "when last seen"
	}
	return v
}

// redisVerdict answers whether this node reaches its Redis.
func redisVerdict(s Snapshot, now time.Time) verdict {
	v := verdict{Question: "Redis", Tone: good, Answer: "Answers", Note: s.Redis.Host}
	if !s.Redis.OK {
		v.Tone, v.Answer = bad, "Does not answer"
		v.Note = or(clip(s.Redis.Error), s.Redis.Host)
	}
	if !s.Redis.Since.IsZero() {
		v.Note += ", for " + span(wholeSeconds(now.Sub(s.Redis.Since)))
	}
	return v
}

// nodesVerdict answers who would take over.
func nodesVerdict(s Snapshot, known bool) verdict {
	live, ready := 0, 0
	var silent []string
	for _, n := range s.Nodes {
		if n.Stale {
			silent = append(silent, n.ID)
			continue
		}
		live++
		if !n.Observer && n.Aside == "" && (s.Leader == nil || s.Leader.NodeID != n.ID) {
			ready++
		}
	}
	v := verdict{Question: "Nodes", Tone: good, Answer: fmt.Sprintf("%d live", live), Note: fmt.Sprintf("%d could take over", ready)}
	switch {
	case !known:
		v.Tone, v.Answer, v.Note = warn, "Not known", "the state could not be read"
	case s.Error != "":
		v.Tone, v.Answer, v.Note = warn, "Not known", fmt.Sprintf("%d live when last seen", live)
	case len(silent) > 0:
		v.Tone, v.Answer, v.Note = warn, fmt.Sprintf("%d live, %d silent", live, len(silent)), some(silent)+" not seen"
	case s.Leader == nil && ready == 0:
		v.Tone, v.Note = warn, "none could lead"
	case s.Leader == nil:
		v.Note = fmt.Sprintf("%d could lead", ready)
	case ready == 0:
		v.Tone, v.Note = warn, "no standby could take over"
	}
	return v
}
