package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// verdict answers a question about the state, and gives advice if there is a problem.
type verdict struct {
	Tone     tone
	Question string
	Answer   string
	Note     string
	Detail   string // a longer Note, for places with enough room; "" if there is only Note
	Next     string // the advice; "" if there is no problem
	Command  string // the command for the advice; "" if there is none
	Link, Of string // the page of a job with details, and the job's name; "" if there is none
	Say      string // read out by screen readers when the verdict appears; contains no numbers, because they change all the time
}

// dataVerdict says how far the data in the database lags behind the data in Redis.
func dataVerdict(s diagnose.Snapshot) verdict {
	v := verdict{Question: "Data", Tone: good, Answer: "Up to date"}
	d := diagnose.DataOf(s)
	waiting := waitingOf(d)
	switch {
	case s.Error != "":
		v.Tone, v.Answer, v.Note = warn, "Not known", "the state could not be read"
		v.Next = "Changes wait in Redis until the state can be read: check Redis first."
	case len(s.Jobs) > 0 && d.State == diagnose.DataNoneHere:
		v.Tone, v.Answer, v.Note = idle, "No flush", "all jobs run commands"
	case d.State == diagnose.DataLate:
		v.Tone, v.Answer, v.Say = bad, text.Span(d.Lag)+" late", "Data is late"
		v.about(s, *d.Worst)
		v.Note = d.Worst.Name
		if more := len(d.Late) - 1; more > 0 {
			v.Note += fmt.Sprintf(" and %d more", more)
		}
		v.Note += "; " + waiting
	case d.State == diagnose.DataStuck:
		v.Tone, v.Answer, v.Note, v.Say = bad, "Not written", namesOf(d.Unwritten)+" failing; "+waiting, "Data is not written"
		v.about(s, d.Unwritten[0])
	case d.Worst == nil:
		v.Tone, v.Answer, v.Note = idle, "Not measured", "no flush has reported its lag"
	case d.State == diagnose.DataUnknown:
		why := " never succeeded; "
		if slices.ContainsFunc(d.Unmeasured, func(j diagnose.Job) bool { return j.BacklogUnknown != "" }) {
			why = ": the lag is unknown; "
		}
		v.Tone, v.Answer, v.Note = idle, "Partly unknown", namesOf(d.Unmeasured)+why+waiting
	case d.Lag == 0 && d.Waiting == 0:
		v.Note = "nothing waits to be written"
	default:
		v.Note = "at most " + text.Span(d.Lag) + " behind; " + waiting
	}
	return v
}

// waitingOf returns a text with the number of waiting changes, or says that the number is unknown.
func waitingOf(d diagnose.Data) string {
	switch {
	case d.Uncounted == 0:
		return text.Count(d.Waiting, "change") + " waiting"
	case d.Waiting == 0:
		return "changes waiting: unknown"
	}
	return "at least " + text.Count(d.Waiting, "change") + " waiting"
}

// about sets the verdict's advice to the advice for the job j.
func (v *verdict) about(s diagnose.Snapshot, j diagnose.Job) {
	v.Next, v.Command, v.Link, v.Of = jobNext(s, j), s.WhatNow(j).Command(j), jobURL(j.Name), j.Name
}

func namesOf(jobs []diagnose.Job) string {
	names := make([]string, len(jobs))
	for i, j := range jobs {
		names[i] = j.Name
	}
	return text.Names(names, namesShown)
}

// jobNext returns the advice for a job that fails or is late.
func jobNext(s diagnose.Snapshot, j diagnose.Job) string {
	switch s.WhatNow(j) {
	case diagnose.NextRead:
		return "Read the last error of " + j.Name + ", fix the cause, and run the job."
	case diagnose.NextOutput:
		return "Read what " + j.Name + " printed, fix the cause, and run the job."
	case diagnose.NextLead:
		return "No job runs until a node leads. Nothing is lost: changes wait in Redis."
	case diagnose.NextResume:
		return "The job is paused " + clip(j.Paused.Reason) + ". Once the cause is gone, resume " + j.Name + "."
	case diagnose.NextMatch:
		return "The configuration of " + j.Unscheduled.Leader + ", which leads, has no job " + j.Name + ". " +
			"Give every node the same file and reload it. Another installation on this Redis needs another election.lock_key."
	case diagnose.NextWait:
		return "The job is running: check whether its backlog shrinks."
	}
	return "No run has succeeded since it was due: see its history, and run it."
}

// whyShown is the maximum length in bytes of an error at the top of the page.
const whyShown = 160

// jobsVerdict answers whether the last runs succeeded.
func jobsVerdict(s diagnose.Snapshot, known bool) verdict {
	var failing, late, lacking, paused []diagnose.Job
	running, ran := 0, 0
	now := s.Clock()
	for _, j := range s.Jobs {
		if j.IsLate(now) != "" {
			late = append(late, j)
		}
		if j.Unscheduled != nil {
			lacking = append(lacking, j)
		}
		if j.Paused != nil {
			paused = append(paused, j)
		}
		if j.Running != nil {
			running++
		}
		if j.LastRun != nil {
			ran++
		}
		if j.IsFailing() {
			failing = append(failing, j)
		}
	}
	v := verdict{Question: "Jobs", Tone: good, Answer: fmt.Sprintf("All %d healthy", len(s.Jobs)),
		Note: fmt.Sprintf("%d running now", running)}
	about := func(t tone, what string, jobs []diagnose.Job) {
		v.Tone, v.Answer, v.Note = t, fmt.Sprintf("%d of %d %s", len(jobs), len(s.Jobs), what), namesOf(jobs)
		v.about(s, jobs[0])
	}
	switch {
	case !known:
		v.Tone, v.Answer, v.Note = warn, "Not known", "the state could not be read"
	case len(s.Jobs) == 0:
		v.Tone, v.Answer, v.Note = idle, "None", "no job is configured on this node"
	case len(failing) > 0:
		about(bad, "failing", failing)
		v.Say = "Jobs are failing"
		if last := failing[0].LastRun; last != nil && last.Error != "" {
			v.Detail = v.Note + ". The last error of " + v.Of + ": " + text.Clip(visible(last.Error), whyShown)
		}
	case len(late) > 0:
		about(bad, "late", late)
		v.Say = "Jobs are late"
	case len(lacking) > 0:
		about(warn, "not scheduled by the leader", lacking)
		v.Say = "Jobs are not scheduled by the leader"
	case len(paused) > 0:
		about(warn, "paused", paused)
		v.Next, v.Command = "Resume when the reason for the pause is gone.", paused[0].EndsPause()
	case ran == 0 && running == 0:
		v.Tone, v.Answer = idle, "None has run yet"
	case len(s.Jobs) == 1:
		v.Answer = "Healthy"
	}
	if s.Error != "" && known && len(s.Jobs) > 0 {
		v.Tone, v.Note = worseOf(v.Tone, warn), "when last seen"
	}
	return v
}

const redisQuestion, nodesQuestion = "Redis", "Nodes"

// redisVerdict answers whether this node reaches its Redis.
func redisVerdict(s diagnose.Snapshot, now time.Time) verdict {
	v := verdict{Question: redisQuestion, Tone: good, Answer: "Answers", Note: s.Redis.Host}
	if !s.Redis.OK {
		v.Tone, v.Answer, v.Detail = bad, "Does not answer", clip(visible(s.Redis.Error))
		v.Next = "See whether Redis runs at " + cmp.Or(s.Redis.Host, "its address") +
			". The page of another node shows whether only this node has the problem. Ask on this node:"
		v.Command = "baton doctor"
		v.Say = "Redis does not answer"
	}
	if !s.Redis.Since.IsZero() {
		v.Note += ", for " + text.Span(wholeSeconds(now.Sub(s.Redis.Since)))
	}
	return v
}

// nodesVerdict answers whether a node could take over the lead.
func nodesVerdict(s diagnose.Snapshot, known bool) verdict {
	count := s.Count()
	v := verdict{Question: nodesQuestion, Tone: good, Answer: fmt.Sprintf("%d live", count.Live),
		Note: fmt.Sprintf("%d could take over", count.Ready)}
	troubles := nodeTroubles(diagnose.Problems(s))
	if s.NodesRead > 0 {
		v.Answer = "at least " + v.Answer
	}
	if count.Silent > 0 {
		v.Answer += fmt.Sprintf(", %d silent", count.Silent)
	}
	switch {
	case !known:
		v.Tone, v.Answer, v.Note = warn, "Not known", "the state could not be read"
	case s.Error != "":
		v.Tone, v.Answer, v.Note = warn, "Not known", fmt.Sprintf("%d live when last seen", count.Live)
	case count.Silent > 0:
		v.Tone, v.Note, v.Next, v.Command = troubles[0].tone, troubles[0].note, troubles[0].next, troubles[0].command
		v.Say = "A node is silent"
	case s.Leader == nil && count.Ready == 0 && s.NodesRead == 0:
		v.Tone, v.Note, v.Next = warn, "none could lead", "Start a node that may lead."
	case s.Leader == nil && s.NodesRead == 0:
		v.Note = fmt.Sprintf("%d could lead", count.Ready)
	case count.Ready == 0 && s.NodesRead == 0:
		v.Tone, v.Note, v.Next = warn, "no standby could take over", "Start another node: if the leader fails, no node takes over."
	case len(troubles) > 0:
		v.Tone, v.Note, v.Next, v.Command = troubles[0].tone, troubles[0].note, troubles[0].next, troubles[0].command
	}
	return v
}
