package page

import (
	"fmt"
	"net/url"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/text"
)

// jobPage is the page of one job.
type jobPage struct {
	Job        jobView
	Name       string
	IsCommand  bool
	IsPaused   bool
	Overlap    string
	Definition string   // as resolved; "" before signing in
	Commands   []string // about it, for a terminal
	Retry      string
	RetryMS    int64   // of the time in it
	Until      instant // the end of its pause
	Plots      *plotsView
	Durations  *durationsView
	Running    []runningView
	Entries    []entryView
	Older      string // link to the older part of the history
	Newest     string // link to its newest part; "": this is it
	Letters    []letterView
	Trouble    []string // the parts that could not be read
	MayCancel  bool
	MayVerify  bool
	Verified   *verifiedView // its last finished verification; may be nil
	Operation  string        // the verification or backfill under way
}

// entryView is one line of a job's history: a run, or missed slots.
type entryView struct {
	Run    *runView
	Since  instant // the first slot of several
	Slot   instant
	By     string
	Number string // of the attempt; "" for the first
	Missed string // "12 slots missed"
	Why    string
	Error  string
	When   instant
	NodeID string
}

// overlapWords describes how the job treats a slot while an earlier run goes on.
func overlapWords(overlap string) string {
	switch overlap {
	case "forbid":
		return "the slot is left out"
	case "queue_one":
		return "one run waits for it"
	case "replace":
		return "it is ended for the new one"
	case "allow":
		return "the new one runs beside it"
	}
	return words(overlap)
}

// missedWhy puts a reason into plain words.
func missedWhy(reason string) string {
	switch reason {
	case "overlap":
		return "an earlier run was still going on"
	case "no_leader":
		return "no node led"
	case "late":
		return "the leader came too late: its clock jumped, or its host stood still or was too busy"
	case "ledger":
		return "Redis did not take the slot"
	case "paused":
		return "the job was paused"
	case "concurrency":
		return "as many jobs ran as may"
	case "unknown":
		return "an earlier leader left them open, and has not said why"
	}
	return words(reason)
}

func newEntries(job string, entries []operate.Entry, now time.Time) (views []entryView) {
	for _, e := range entries {
		v := entryView{When: at(e.At.UTC(), now)}
		if m := e.Missed; m != nil {
			v.Missed, v.Why, v.Error, v.NodeID = text.Count(int64(m.Count), "slot")+" missed", missedWhy(m.Reason),
				clip(visible(m.Error)), m.NodeID
			v.When = at(m.Last.UTC(), now)
			if m.Count > 1 {
				v.Since = at(m.First.UTC(), now)
			}
			if m.Count == 0 {
				v.Missed, v.Why = "nothing is caught up from before",
					"the record of earlier runs was missing: the job is new, or Redis has lost its data"
			}
		}
		if r := e.Run; r != nil {
			run := *r
			run.NodeID = "" // it has a column of its own
			v.Run, v.By, v.Slot, v.NodeID = newRunView(job, &run, now), clip(r.By), at(r.Slot.UTC(), now), r.NodeID
			if r.Idle != nil {
				v.Since = at(r.Idle.First.UTC(), now)
			}
			if r.ID != "" && e.ID != "" {
				v.Run.URL += "?entry=" + url.QueryEscape(e.ID)
			}
			if r.Attempt > 1 {
				v.Number = text.Number(r.Attempt)
			}
		}
		views = append(views, v)
	}
	return views
}

// entriesShown bounds the entries of a history on one page.
const entriesShown = 50

// jobNamed finds a job of s by its name, or returns nil.
func jobNamed(s diagnose.Snapshot, name string) *diagnose.Job {
	for i := range s.Jobs {
		if s.Jobs[i].Name == name {
			return &s.Jobs[i]
		}
	}
	return nil
}

func newJobPage(s diagnose.Snapshot, j diagnose.Job, extra extras, entries []operate.Entry, before, span string) jobPage {
	now := s.Clock()
	v := jobPage{
		Job: newJobView(j, now), Name: j.Name, IsCommand: j.Command, IsPaused: j.Paused != nil, Overlap: overlapWords(j.Overlap),
		Definition: j.Definition,
		Entries:    newEntries(j.Name, entries, now), Commands: []string{"baton job show " + j.Name, "baton job history " + j.Name},
	}
	if j.Command {
		v.Commands = append(v.Commands, "baton job logs "+j.Name)
	}
	v.Job.Next = nextRun(s, j, true, v.Job.Next)
	v.Job.Strip = newStrip(extra.recent[j.Name])
	if j.Paused != nil && !j.Paused.Until.IsZero() {
		v.Until = at(j.Paused.Until.UTC(), now)
	}
	if r := j.Retry; r != nil {
		v.Retry = "attempt " + text.Number(r.Attempt) + " at " + at(r.At.UTC(), now).Clock
		v.RetryMS = r.At.UnixMilli()
	}
	for _, r := range runsOf(j) {
		v.Running = append(v.Running, newRunningView(j, r, now))
	}
	v.MayVerify, v.Verified = j.Comparable, newVerifiedView(j.Verified, now)
	if o := j.Operation; o != nil && o.State == "running" {
		v.Operation = fmt.Sprintf("%s, %.0f %% done, %s", o.Kind, o.Progress.Part*100, text.Count(o.Progress.Result.Records, "record"))
	}
	v.MayCancel = len(v.Running) > 0 || j.Retry != nil || v.Operation != ""
	v.Durations = newDurations(j.Name, extra.recent[j.Name], now)
	if !j.Command {
		v.Plots = newPlots(s, j, extra, span)
	}
	if len(entries) == entriesShown {
		v.Older = jobURL(j.Name) + "?before=" + url.QueryEscape(entries[len(entries)-1].ID)
	}
	if before != "" {
		v.Newest = jobURL(j.Name)
	}
	return v
}

// verifiedView is the result of a verification.
type verifiedView struct {
	Tone    tone
	Verdict string
	Text    string
	When    instant
}

func newVerifiedView(o *diagnose.Operation, now time.Time) *verifiedView {
	if o == nil {
		return nil
	}
	found := o.Progress.Result
	v := &verifiedView{
		Tone: good, Verdict: "no differences", Text: text.Count(found.Records, "record") + " compared", When: at(o.Finished.UTC(), now),
	}
	if o.Sample > 0 {
		v.Text += fmt.Sprintf(", a sample of %g %%", o.Sample*100)
	}
	switch n := found.Differences(); {
	case n > 0:
		v.Tone, v.Verdict = bad, text.Count(n, "difference")
		v.Text += fmt.Sprintf(": %d missing, %d different, %d extra, %d unfit", found.Missing, found.Different, found.Extra, found.Unfit)
	case o.State != "succeeded":
		v.Tone, v.Verdict, v.Text = warn, "failed", clip(visible(o.Error))
	}
	return v
}

// runPage is the page of one run, with its output.
type runPage struct {
	Job, JobURL, ID string
	Live            bool // the run goes on
	State           string
	Tone            tone
	Facts           []fact
	Error           string
	Output          string
	Command         string // shows the output in a terminal
	Dropped         string // says how many bytes before Output are missing
	NoOutput        string // why Output is empty
	Cancel          string // link to cancel the run
}

type fact struct {
	Name, Text string
	When       instant
}

// maxOutput bounds the bytes of a run's output on the page, which shows its end.
const maxOutput = 96 << 10

func newRunPage(s diagnose.Snapshot, j diagnose.Job, r *diagnose.Run, id string) runPage {
	now := s.Clock()
	v := runPage{Job: j.Name, JobURL: jobURL(j.Name), ID: id, State: "not known", Tone: idle}
	if j.Command {
		v.Command = "baton job logs " + j.Name + " --run " + id
	}
	if r == nil {
		return v
	}
	v.State, v.Tone, v.Error, v.Live = words(r.State), runTone(r.State), clip(visible(r.Error)), r.State == "running"
	add := func(name, text string) {
		if text != "" {
			v.Facts = append(v.Facts, fact{Name: name, Text: text})
		}
	}
	v.Facts = append(v.Facts, fact{Name: "Started", When: at(r.Started.UTC(), now)})
	if v.Live {
		v.Facts = append(v.Facts, fact{Name: "For", When: elapsed(r.Started, now)})
		v.Cancel = orderURL(operate.KindCancel, "job", j.Name, "run", id)
	} else {
		add("Took", text.Span(r.Duration.Duration()))
	}
	add("Node", r.NodeID)
	add("Trigger", words(r.Trigger))
	add("Asked for", clip(r.By))
	if !r.Slot.IsZero() {
		v.Facts = append(v.Facts, fact{Name: "Slot", When: at(r.Slot.UTC(), now)})
	}
	if r.Attempt > 1 {
		add("Attempt", text.Number(r.Attempt))
	}
	if r.ExitCode != nil {
		add("Exit code", text.Number(*r.ExitCode))
	}
	if !j.Command {
		add("Rows", text.Number(r.Rows))
	}
	if r.Deleted > 0 {
		add("Rows deleted", text.Number(r.Deleted))
	}
	if r.Dead > 0 {
		add("Dead letters", text.Number(r.Dead))
	}
	add("Epoch", epoch(r.Epoch))
	return v
}

// show adds the output of the run.
func (v *runPage) show(o operate.Printed) {
	v.Live = v.Live || o.Running && v.State == "not known"
	shown, dropped := o.Text, o.Dropped
	if cut := len(shown) - maxOutput; cut > 0 {
		shown, dropped = shown[cut:], dropped+int64(cut)
	}
	v.Output = visible(shown)
	if dropped > 0 {
		v.Dropped = text.Number(dropped) + " bytes before this are not shown"
	}
	if v.Output == "" {
		v.NoOutput = "It has printed nothing."
		if v.Live {
			v.NoOutput = "It has printed nothing yet."
		}
	}
}
