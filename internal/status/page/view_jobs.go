package page

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// manyJobs is the maximum number of jobs that the start page shows by default. The page changes every second, so a few thousand rows would
// keep a browser busy all the time.
const manyJobs = 200

type jobView struct {
	Name, Target, Lock    string
	Store                 string // the store that the job reads; "" means the Redis of the lock
	URL                   string
	Words, Schedule, Zone string
	Next                  instant
	Paused                string  // such as "by alice: upgrade"
	Since                 instant // the beginning of the pause
	Running               instant // Near is a text such as "for 12 s"
	On                    string  // the node that runs the job
	SoFar                 string  // such as "1,200 rows of 5,000 changes"
	Last                  *runView
	NoLast                string // shown if no run has ended: "never", or "–" while the last known run is in progress
	Failures              string // such as "3 failures in a row"
	Overdue               string // such as "late: due at 18:30:00 UTC"
	OverdueMS             int64  // the time in Overdue
	Unscheduled           string // such as "not scheduled by db2, which leads"
	Backlog, Lag          string
	Uncounted             string // why the backlog is unknown
	LagTone               tone
	Spark                 *spark
	Strip                 *strip
	Rate                  string // in rows per second
	Printed               string // the last line of a failed command's output
}

type runView struct {
	Tone                        tone
	State, Summary, Dead, Error string
	Started                     instant
	URL                         string
}

// runningView is a run in progress.
type runningView struct {
	Job, URL, JobURL, On, SoFar, Trigger, By string
	Started                                  instant
}

// manyRunning is the maximum number of running jobs on the start page.
const manyRunning = 5

// runsOf returns all runs of a job that are in progress.
func runsOf(j diagnose.Job) []diagnose.Run {
	if len(j.Open) == 0 && j.Running != nil {
		return []diagnose.Run{*j.Running}
	}
	return j.Open
}

func newRunningView(j diagnose.Job, r diagnose.Run, now time.Time) runningView {
	return runningView{
		Job: j.Name, URL: runURL(j.Name, r.ID), JobURL: jobURL(j.Name), On: cmp.Or(r.NodeID, "?"), SoFar: soFar(r),
		Trigger: words(r.Trigger), By: clip(r.By), Started: elapsed(r.Started, now),
	}
}

func jobURL(job string) string { return "/jobs/" + url.PathEscape(job) }

func runURL(job, run string) string {
	if run == "" {
		return jobURL(job)
	}
	return jobURL(job) + "/runs/" + url.PathEscape(run)
}

func newJobView(j diagnose.Job, now time.Time) jobView {
	v := jobView{
		Name: j.Name, Target: j.Target, Store: j.Store, Words: cmp.Or(j.ScheduleWords, j.Schedule), Schedule: j.Schedule, Zone: j.TimeZone,
		Next: atOwn(j.NextRun, now, j.TimeZone), Last: newRunView(j.Name, j.Ended(), now), URL: jobURL(j.Name),
	}
	if r := j.LastRun; j.Command && r != nil && runTone(r.State) == bad {
		v.Printed = text.Clip(visible(r.Output), errorOnFront) // empty in the public part of the state
	}
	v.NoLast = "never"
	if j.LastRun != nil {
		v.NoLast = "–"
	}
	if v.Words == v.Schedule {
		v.Schedule = "" // the schedule is already shown in another form
	}
	if strings.HasPrefix(j.Schedule, "@every") || strings.HasPrefix(j.Schedule, "@always") || strings.Contains(v.Words, v.Zone) {
		v.Zone = "" // the zone has no effect, or is already shown
	}
	if !j.NextRun.IsZero() && j.NextRun.Before(now) {
		v.Next.Near = "due"
	}
	switch {
	case j.ConsecutiveFailures > 1:
		v.Failures = fmt.Sprintf("%s failures in a row", text.Number(j.ConsecutiveFailures))
	case j.IsFailing() && (j.LastRun == nil || runTone(j.LastRun.State) != bad):
		v.Failures = "no success since a failure" // the job's last run does not show the failure
	}
	switch j.IsLate(now) {
	case diagnose.LateNoSuccess:
		v.Overdue = "late: due at " + at(j.DueAt.UTC(), now).Clock
	case diagnose.LateLag:
		v.Overdue = "late: behind since " + at(j.DueAt.UTC(), now).Clock
	}
	v.OverdueMS = j.DueAt.UnixMilli()
	if j.Unscheduled != nil {
		v.Unscheduled = clip(j.Unscheduled.Words())
	}
	if r := j.Running; r != nil {
		v.Running, v.On = elapsed(r.Started, now), cmp.Or(r.NodeID, "?")
		v.SoFar = soFar(*r)
	}
	if p := j.Paused; p != nil {
		v.Paused, v.Since = clip(p.Reason), elapsed(p.Since, now)
	}
	if j.Backlog != nil {
		v.Backlog = text.Number(*j.Backlog)
	}
	if j.Backlog == nil && j.BacklogUnknown != "" {
		v.Backlog, v.Uncounted = "unknown", clip(visible(j.BacklogUnknown))
	}
	if lag, ok := j.Lag(); ok {
		v.Lag, v.LagTone = text.Span(lag), idle
		if j.IsDataLate(now) {
			v.LagTone = bad
		}
	}
	return v
}

// soFar returns a text with the progress that a run has reported.
func soFar(r diagnose.Run) string {
	switch {
	case r.Backlog != nil:
		return text.Count(r.Rows, "row") + " of " + text.Count(*r.Backlog, "change")
	case r.Batches > 0:
		return text.Count(r.Rows, "row") + " so far"
	}
	return ""
}

func newRunView(job string, r *diagnose.Run, now time.Time) *runView {
	if r == nil {
		return nil
	}
	v := &runView{
		Tone: runTone(r.State), State: words(r.State), Summary: "took " + text.Span(r.Duration.Duration()),
		Error: clip(visible(r.Error)), URL: runURL(job, r.ID),
	}
	if r.Rows > 0 {
		v.Summary = text.Count(r.Rows, "row") + " in " + text.Span(r.Duration.Duration())
		if r.Deleted > 0 {
			v.Summary += ", " + text.Number(r.Deleted) + " of them deleted"
		}
	}
	if r.Idle != nil {
		v.Summary = text.Count(int64(r.Idle.Runs), "run") + " with nothing to do"
	}
	if r.NodeID != "" {
		v.Summary += ", on " + r.NodeID
	}
	if r.Trigger != "schedule" && r.Trigger != "" { // the usual trigger is omitted
		v.Summary += ", " + words(r.Trigger)
	}
	if r.Dead > 0 {
		v.Dead = text.Count(r.Dead, "dead letter")
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

// worstFirst sorts jobs by urgency: failing or late jobs first, then paused jobs. If the argument cut is true, running jobs follow the
// paused jobs. Jobs of the same urgency keep the order of the configuration, so that their rows do not change places.
func worstFirst(jobs []diagnose.Job, now time.Time, cut bool) []diagnose.Job {
	rank := func(j diagnose.Job) int {
		switch {
		case j.IsFailing(), j.IsLate(now) != "":
			return 0
		case j.Paused != nil:
			return 1
		case j.Running != nil && cut:
			return 2
		}
		return 3
	}
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b diagnose.Job) int { return cmp.Compare(rank(a), rank(b)) })
	return jobs
}
