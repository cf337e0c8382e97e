package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/state"
	"baton/internal/text"
)

// answersWithin is the maximum time that a page waits for the servers.
const answersWithin = 1500 * time.Millisecond

// compose makes the page that a topic identifies, from the Snapshot of the state. It returns nil if there is no page at the path.
func (p *Pages) compose(ctx context.Context, t topic, snap diagnose.Snapshot, known bool) *document {
	if !t.see {
		snap = state.Public(snap)
	}
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	d := p.newDocument(t, snap, known)
	query, _ := url.ParseQuery(t.query) // invalid parts are dropped
	parts := strings.Split(strings.Trim(t.path, "/"), "/")
	for i := range parts {
		parts[i], _ = url.PathUnescape(parts[i])
	}
	extra := p.answers.extras(ctx, p.Watch, snap.Locks)
	d.Letters = extra.letters.text
	switch {
	case t.path == "/":
		p.composeOverview(d, snap, known, filterOf(query), extra)
	case t.path == "/timeline":
		now := snap.Clock()
		snap.Events = p.answers.before(ctx, p.Watch, snap.Events)
		v := newTimeline(snap, extra.others, query.Get("range"), lanesOnTimeline, now)
		v.Events, v.Cut = eventsOfAll(snap, extra.others, now), len(snap.Events) == eventsOnTimeline
		d.Kind, d.Title, d.View = "timeline", "Timeline", v
	case t.path == "/dead-letters":
		p.composeLetters(ctx, d, t, snap, query)
	case len(parts) == 2 && parts[0] == "jobs":
		return p.composeJob(ctx, d, t, snap, known, parts[1], query, extra)
	case len(parts) == 4 && parts[0] == "jobs" && parts[2] == "runs":
		return p.composeRun(ctx, d, t, snap, known, parts[1], parts[3], query.Get("entry"))
	default:
		return nil
	}
	return d
}

func (p *Pages) composeOverview(d *document, snap diagnose.Snapshot, known bool, filter jobFilter, extra extras) {
	v := newOverview(snap, known, filter, extra)
	d.Kind, d.View = "overview", v
	d.Title = v.Leader.Name + v.Leader.Headline
	d.Announce = d.Title
	if snap.Error != "" && !snap.Redis.OK { // the first problem gives the reason
		d.Alarm = ""
		if known {
			d.Alarm = "What you see is " + text.Span(snap.Age.Duration()) + " old."
		}
	}
	if len(v.First) > 0 && v.First[0].Say != "" {
		d.Title = v.First[0].Say + " · " + d.Title
	}
	if v.Leader.Epoch != "" {
		d.Announce += ", epoch " + v.Leader.Epoch
	}
	for _, p := range slices.Concat(v.First, v.Then) {
		if p.Say != "" {
			d.Announce += ". " + p.Say
		}
	}
}

// lettersOfJob is the maximum number of dead letters on the page of a job.
const lettersOfJob = 10

func (p *Pages) composeJob(ctx context.Context, d *document, t topic, snap diagnose.Snapshot, known bool,
	name string, query url.Values, extra extras,
) *document {
	j, before := jobNamed(snap, name), query.Get("before")
	if j == nil {
		return p.composeMissing(d, known, "There is no job "+name+" in this node’s configuration.")
	}
	var entries []operate.Entry
	var letters []operate.Letter
	var kept operate.KeptCount
	var trouble []string
	if p.Node != nil {
		var err error
		entries, err = p.Node.History(ctx, name, before, entriesShown)
		trouble = troubleOf(trouble, "The history could not be read", err)
		if !t.see {
			entries = slices.Clone(entries)
			for i := range entries {
				entries[i].Run = state.PublicRun(entries[i].Run)
				if m := entries[i].Missed; m != nil {
					hidden := *m
					hidden.Error = state.PublicError(m.Error)
					entries[i].Missed = &hidden
				}
			}
		}
		if !j.Command {
			letters, kept = p.answers.lettersOf(ctx, p.Watch, name), p.answers.keptOf(ctx, p.Watch, name)
		}
	}
	v := newJobPage(snap, *j, extra, entries, before, query.Get("range"))
	v.addKept(kept, snap.Clock())
	v.Letters, v.Trouble = newLetters(letters, snap.Clock(), t.see), trouble
	if j.Lock == snap.LockKey {
		v.Job.Lock = ""
	}
	d.Kind, d.Title, d.View = "job", name, v
	d.Announce = jobAnnounce(v)
	return d
}

// jobAnnounce returns the state of a job for screen readers, without numbers.
func jobAnnounce(v jobPage) string {
	switch {
	case v.IsPaused:
		return v.Name + " is paused"
	case len(v.Running) > 0:
		return v.Name + " is running"
	case v.Job.Last != nil:
		return v.Name + ": last run " + v.Job.Last.State
	}
	return v.Name
}

func (p *Pages) composeRun(ctx context.Context, d *document, t topic, snap diagnose.Snapshot, known bool,
	name, id, entry string,
) *document {
	j := jobNamed(snap, name)
	if j == nil {
		return p.composeMissing(d, known, "There is no job "+name+" in this node’s configuration.")
	}
	run, err := p.findRun(ctx, *j, id, entry)
	if !t.see {
		run = state.PublicRun(run)
	}
	v := newRunPage(snap, *j, run, id)
	switch {
	case run == nil && err == nil && !p.results.began(id):
		return p.composeMissing(d, known, "There is no run "+id+" of "+name+", or not any more.")
	case run == nil:
		v.State, v.Live = "waits, or is about to start", true
	}
	switch {
	case !j.Command:
		v.NoOutput = "A flush prints nothing."
	case !t.see:
		v.NoOutput = "Sign in to see its output."
	case p.Node != nil:
		out, err := p.Node.Printed(ctx, name, id)
		if err != nil && !errors.Is(err, operate.ErrNotFound) {
			v.NoOutput = "Its output cannot be read: " + clip(err.Error())
		} else {
			if errors.Is(err, operate.ErrNotFound) && run != nil {
				out.Text = run.Output
			}
			v.show(out)
		}
	}
	d.Refresh = 2 // for readers who follow the output
	if !v.Live {
		d.Refresh = 0
	}
	d.Kind, d.Title, d.View, d.Announce = "run", "A run of "+name, v, "The run: "+v.State
	if s := snap.Error; s != "" {
		d.Announce = ""
	}
	return d
}

// searched is the maximum number of history entries that findRun searches for a run if only the run's id is known.
const searched = 200

// findRun looks for a run among the runs in progress and in the history. It returns nil if it does not find the run. The argument entry is
// the id of the run's entry in the history, or "" if that is unknown.
func (p *Pages) findRun(ctx context.Context, j diagnose.Job, id, entry string) (*diagnose.Run, error) {
	for _, r := range runsOf(j) {
		if r.ID == id {
			return &r, nil
		}
	}
	if j.LastRun != nil && j.LastRun.ID == id {
		return j.LastRun, nil
	}
	if p.Node == nil {
		return nil, nil
	}
	if after := nextEntry(entry); after != "" {
		if run, err := p.findIn(ctx, j.Name, after, 1, id); run != nil || err != nil {
			return run, err
		} // a run that found nothing to do may have moved to a later entry
	}
	return p.findIn(ctx, j.Name, "", searched, id)
}

func (p *Pages) findIn(ctx context.Context, job, before string, n int, id string) (*diagnose.Run, error) {
	entries, err := p.Node.History(ctx, job, before, n)
	for _, e := range entries {
		if e.Run != nil && e.Run.ID == id {
			return e.Run, nil
		}
	}
	return nil, err
}

// nextEntry returns the smallest id after an entry's id. It returns "" if entry is no valid id.
func nextEntry(entry string) string {
	at, text, _ := strings.Cut(entry, "-")
	number, err := strconv.ParseUint(text, 10, 63)
	if err != nil || !operate.IsEntryID(entry) {
		return ""
	}
	return fmt.Sprintf("%s-%d", at, number+1)
}

func (p *Pages) composeMissing(d *document, known bool, text string) *document {
	d.Kind, d.Title, d.Code, d.Refresh = "message", "Not found", http.StatusNotFound, 0
	d.View = message{Tone: warn, Heading: "Not found", Text: text}
	if !known {
		d.Code, d.Refresh = http.StatusServiceUnavailable, 5
		d.View = message{Tone: warn, Heading: "Not known yet", Text: "This node has not been able to read the state."}
	}
	return d
}

func troubleOf(trouble []string, what string, err error) []string {
	if err == nil {
		return trouble
	}
	return append(trouble, what+": "+clip(visible(err.Error())))
}
