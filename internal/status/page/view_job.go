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
	Definition string   // the resolved configuration; "" if the user has not signed in
	Commands   []string // commands about the job, for a terminal
	Retry      string
	RetryMS    int64   // the time in Retry
	Until      instant // the end of the job's pause
	Plots      *plotsView
	Durations  *durationsView
	Running    []runningView
	Entries    []entryView
	Older      string // a link to older entries of the history
	Newest     string // a link to the newest entries; "" if the page shows them
	Letters    []letterView
	Trouble    []string // the parts that could not be read
	MayCancel  bool
	MayVerify  bool
	LeftAlone  string        // such as "12 rows", which wait to be accepted as rows of the job; "" if no rows wait
	Kept       string        // such as "12 rows", which the job deleted and keep_deleted keeps; "" if there are none
	KeptUnread bool          // baton has not counted these rows yet, or the database has not answered
	KeptUntil  instant       // when the first of these rows may be removed
	Verified   *verifiedView // the job's last finished verification; may be nil
	Operation  string        // the verification or backfill in progress
}

// entryView is one line of a job's history. The line shows a run, or slots (times of the schedule) that were missed.
type entryView struct {
	Run    *runView
	Since  instant // the first slot, if there are several
	Slot   instant
	By     string
	Number string // the number of the attempt; "" for the first attempt
	Missed string // such as "12 slots missed"
	Why    string
	Error  string
	When   instant
	NodeID string
}

// overlapWords describes how the job treats a slot (a time of its schedule) while an earlier run is in progress.
func overlapWords(overlap string) string {
	switch overlap {
	case "forbid":
		return "the slot is left out"
	case "queue_one":
		return "one run waits for it"
	case "replace":
		return "it is ended, and the new run starts"
	case "allow":
		return "the new run starts beside it"
	}
	return words(overlap)
}

// missedWhy returns the reason for missed slots in plain words.
func missedWhy(reason string) string {
	switch reason {
	case "overlap":
		return "an earlier run was still going on"
	case "no_leader":
		return "no node led"
	case "late":
		return "the leader came too late: its clock jumped, or its host stood still or was too busy"
	case "ledger":
		return "Redis refused the claim of the slot"
	case "paused":
		return "the job was paused"
	case "concurrency":
		return "the limit of concurrent runs was reached"
	case "unknown":
		return "an earlier leader did not run them, and recorded no reason"
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
				v.Missed, v.Why = "the job does not catch up earlier slots",
					"the record of earlier runs was missing: the job is new, or Redis has lost its data"
			}
		}
		if r := e.Run; r != nil {
			run := *r
			run.NodeID = "" // the node has its own column
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

// entriesShown is the maximum number of history entries on one page.
const entriesShown = 50

// jobNamed returns the job of s with the given name, or nil if there is none.
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
	if j.Unaccepted > 0 {
		v.LeftAlone = text.Count(j.Unaccepted, "row")
		v.Commands = append(v.Commands, "baton job preview "+j.Name+" --all")
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

// addKept adds the number of kept deleted rows and the command that lists them.
func (v *jobPage) addKept(kept operate.KeptCount, now time.Time) {
	if v.KeptUnread = !kept.Known && !v.IsCommand; kept.Rows == 0 {
		return
	}
	v.Kept, v.KeptUntil = text.Count(kept.Rows, "row"), at(kept.First.UTC(), now)
	if kept.Rows == operate.MostKept {
		v.Kept += " or more"
	}
	v.Commands = append(v.Commands, "baton rows list --job "+v.Name)
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

// runPage is the page of one run, with the run's output.
type runPage struct {
	Job, JobURL, ID string
	Live            bool // the run is in progress
	State           string
	Tone            tone
	Facts           []fact
	Error           string
	Output          string
	Command         string // the command that shows the output in a terminal
	Dropped         string // says how many bytes before Output are missing
	NoOutput        string // why Output is empty
	Cancel          string // a link to cancel the run
}

type fact struct {
	Name, Text string
	When       instant
}

// maxOutput is the maximum size of a run's output on the page, in bytes. The page shows the end of the output.
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

// show adds the output of the run to the page.
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
