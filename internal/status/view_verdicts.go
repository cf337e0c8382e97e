package status

import (
	"fmt"
	"slices"
	"time"

	"baton/internal/text"
)

// verdict answers one question in one word, and says what to do about it.
type verdict struct {
	Tone     tone
	Question string
	Answer   string
	Note     string
	Detail   string // more of it than fits beside others; "": Note is all
	Next     string // what to do; "" where all is well
	Link, Of string // where to look, which is the page of that job; "" is nowhere else
	Say      string // read out when it comes up; without figures, which would chatter
}

// dataVerdict answers whether the database is behind Redis.
func dataVerdict(s Snapshot) verdict {
	v := verdict{Question: "Data", Tone: good, Answer: "Up to date"}
	var worst Job
	var lag time.Duration
	var waiting int64
	measured, late := false, 0
	var unwritten, unknown []string
	for _, j := range s.Jobs {
		if j.Backlog != nil {
			waiting += *j.Backlog
		}
		if j.Unwritten() {
			unwritten = append(unwritten, j.Name)
		}
		d, ok := lagOf(j)
		if !ok {
			if !j.Command {
				unknown = append(unknown, j.Name)
			}
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
		v.Next = "Changes wait in Redis until it can be read: look at Redis first."
	case len(s.Jobs) > 0 && !slices.ContainsFunc(s.Jobs, func(j Job) bool { return !j.Command }):
		v.Tone, v.Answer, v.Note = idle, "No flush", "all jobs run commands"
	case late == 0 && len(unwritten) > 0:
		v.Tone, v.Answer, v.Note, v.Say = bad, "Not written", text.Names(unwritten, namesShown)+" failing; "+text.Count(waiting, "change")+" waiting", "Data is not written"
		v.Next, v.Link, v.Of = "It fails: read its last error, and mend that.", jobURL(unwritten[0]), unwritten[0]
	case !measured:
		v.Tone, v.Answer, v.Note = idle, "Not measured", "no flush has reported its lag"
	case late > 0:
		v.Tone, v.Answer, v.Say = bad, text.Span(lag)+" late", "Data is late"
		v.Next, v.Link, v.Of = lateNext(s, worst), jobURL(worst.Name), worst.Name
		v.Note = worst.Name
		if late > 1 {
			v.Note += fmt.Sprintf(" and %d more", late-1)
		}
		v.Note += "; " + text.Count(waiting, "change") + " waiting"
	case len(unknown) > 0:
		v.Tone, v.Answer, v.Note = idle, "Not known of all", text.Names(unknown, namesShown)+" never ended well; "+text.Count(waiting, "change")+" waiting"
	case lag == 0 && waiting == 0:
		v.Note = "nothing waits to be written"
	default:
		v.Note = "at most " + text.Span(lag) + " behind; " + text.Count(waiting, "change") + " waiting"
	}
	return v
}

// lateNext is what to do about a job that is late.
func lateNext(s Snapshot, j Job) string {
	switch {
	case s.Leader == nil || s.Leader.Foreign:
		return "Nobody writes while no node leads: see above. Nothing is lost, it waits in Redis."
	case j.Paused != nil:
		return "It is paused: resume " + j.Name + "."
	case failing(j):
		return "It fails: read its last error, and mend that."
	case j.Running != nil:
		return "It is at work: watch whether the backlog falls."
	}
	return "It should run: open it, and run it now."
}

// whyShown is how much of an error stands at the top of the page.
const whyShown = 160

// jobsVerdict answers whether the last runs were well.
func jobsVerdict(s Snapshot, known bool) verdict {
	var bads, overdue, paused []string
	var why string
	running, ran := 0, 0
	for _, j := range s.Jobs {
		if !j.OverdueSince.IsZero() {
			overdue = append(overdue, j.Name)
		}
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
			if len(bads) == 0 {
				why = text.Clip(visible(j.LastRun.Error), whyShown)
			}
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
		v.Tone, v.Answer, v.Note = bad, fmt.Sprintf("%d of %d failing", len(bads), len(s.Jobs)), text.Names(bads, namesShown)
		if why != "" {
			v.Detail = text.Names(bads, namesShown) + ". The last error of " + bads[0] + ": " + why
		}
		v.Next, v.Link, v.Of, v.Say = "Read the last error of "+bads[0]+", mend that, and run it.", jobURL(bads[0]), bads[0], "Jobs are failing"
	case len(overdue) > 0:
		v.Tone, v.Answer, v.Note = bad, fmt.Sprintf("%d of %d late", len(overdue), len(s.Jobs)), text.Names(overdue, namesShown)
		v.Next, v.Link, v.Of, v.Say = "Its time has passed without a success: see why in its history, and run it.", jobURL(overdue[0]), overdue[0], "Jobs are late"
	case len(paused) > 0:
		v.Tone, v.Answer, v.Note = warn, fmt.Sprintf("%d of %d paused", len(paused), len(s.Jobs)), text.Names(paused, namesShown)
		v.Next, v.Link, v.Of = "Resume when the work that it was for is done.", jobURL(paused[0]), paused[0]
	case ran == 0 && running == 0:
		v.Tone, v.Answer = idle, "None has run yet"
	case len(s.Jobs) == 1:
		v.Answer = "Well"
	}
	if s.Error != "" && known && len(s.Jobs) > 0 {
		v.Tone, v.Note = worseOf(v.Tone, warn), "when last seen"
	}
	return v
}

const redisQuestion, nodesQuestion = "Redis", "Nodes"

// redisVerdict answers whether this node reaches its Redis.
func redisVerdict(s Snapshot, now time.Time) verdict {
	v := verdict{Question: redisQuestion, Tone: good, Answer: "Answers", Note: s.Redis.Host}
	if !s.Redis.OK {
		v.Tone, v.Answer, v.Detail = bad, "Does not answer", clip(visible(s.Redis.Error))
		v.Next = "See whether Redis runs at " + or(s.Redis.Host, "its address") + ", and ask baton doctor on this node. The page of another node tells whether it is this one alone."
		v.Say = "Redis does not answer"
	}
	if !s.Redis.Since.IsZero() {
		v.Note += ", for " + text.Span(wholeSeconds(now.Sub(s.Redis.Since)))
	}
	return v
}

// clockOff is from when on a clock is called wrong: schedules follow the leader's.
const clockOff = time.Second

// nodesVerdict answers who would take over.
func nodesVerdict(s Snapshot, known bool) verdict {
	live, ready := 0, 0
	silent := 0
	for _, n := range s.Nodes {
		if n.Silent() {
			silent++
			continue
		}
		live++
		if !n.Observer && n.Aside == "" && (s.Leader == nil || s.Leader.NodeID != n.ID) {
			ready++
		}
	}
	v := verdict{Question: nodesQuestion, Tone: good, Answer: fmt.Sprintf("%d live", live), Note: fmt.Sprintf("%d could take over", ready)}
	troubles := nodeTroubles(s)
	if silent > 0 {
		v.Answer += fmt.Sprintf(", %d silent", silent)
	}
	switch {
	case !known:
		v.Tone, v.Answer, v.Note = warn, "Not known", "the state could not be read"
	case s.Error != "":
		v.Tone, v.Answer, v.Note = warn, "Not known", fmt.Sprintf("%d live when last seen", live)
	case silent > 0:
		v.Tone, v.Note, v.Next, v.Say = warn, troubles[0].note, troubles[0].next, "A node is silent"
	case s.Leader == nil && ready == 0:
		v.Tone, v.Note, v.Next = warn, "none could lead", "Start a node that may lead."
	case s.Leader == nil:
		v.Note = fmt.Sprintf("%d could lead", ready)
	case ready == 0:
		v.Tone, v.Note, v.Next = warn, "no standby could take over", "Start another node: if the leader fails, nobody goes on."
	case len(troubles) > 0:
		v.Tone, v.Note, v.Next = warn, troubles[0].note, troubles[0].next
	}
	return v
}
