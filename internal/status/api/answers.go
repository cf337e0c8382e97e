package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/state"
	"baton/internal/status/web"
	"baton/internal/text"
)

// These types of answers are used only by the API.
type (
	// statusReply is a Snapshot. If known is false, the Snapshot contains only an error.
	statusReply struct {
		diagnose.Snapshot
		known bool
	}
	leaderReply struct {
		// Leader is null if the lock is free, or if its holder is unknown. In that case Vacancy is the reason why no node may take the
		// lock, or names the last leader.
		Leader  *diagnose.Leader `json:"leader"`
		Vacancy string           `json:"vacancy,omitzero"`
		Paused  *diagnose.Pause  `json:"paused,omitempty"`
		LockKey string           `json:"lock_key"`
		Age     text.Seconds     `json:"age_seconds"`
		Error   string           `json:"error,omitzero"`
	}
	nodesReply struct {
		Nodes []diagnose.Node `json:"nodes"`
		Age   text.Seconds    `json:"age_seconds"`
		Error string          `json:"error,omitzero"`
	}
	jobsReply struct {
		Jobs  []diagnose.Job `json:"jobs"`
		Age   text.Seconds   `json:"age_seconds"`
		Error string         `json:"error,omitzero"`
	}
	historyReply struct {
		Entries []operate.Entry `json:"entries"` // the newest entry first
		Before  string          `json:"before,omitzero"`
	}
	outputReply struct {
		Text string `json:"text"`
		// Offset is the position of Text in the whole output of the run, and Next is the position of the next part, in bytes.
		Offset  int64 `json:"offset"`
		Next    int64 `json:"next"`
		Running bool  `json:"running"`
	}
	eventsReply struct {
		Events []diagnose.Event `json:"events"` // the newest event first
	}
	lettersReply struct {
		Letters []operate.Letter `json:"letters"` // the newest letter first
		// Error says why a database did not answer.
		Error string `json:"error,omitzero"`
	}
	keysReply struct {
		Letters []operate.LetterKey `json:"letters"`
		// More means that the list was cut.
		More bool `json:"more"`
	}
	reasonsReply struct {
		Reasons []operate.LetterReason `json:"reasons"` // the most frequent reason first
		Error   string                 `json:"error,omitzero"`
	}
	rowsReply struct {
		Rows []operate.DeletedRow `json:"rows"` // the newest row first
		// Error is the reason why a database did not answer.
		Error string `json:"error,omitzero"`
	}
	runsReply struct {
		// Jobs contains the latest runs of each job by the job's name: at most 30 runs, the oldest run first.
		Jobs  map[string][]operate.Brief `json:"jobs"`
		Error string                     `json:"error,omitzero"`
	}
	samplesReply struct {
		Samples []operate.Sample `json:"samples"` // the oldest sample first
		Error   string           `json:"error,omitzero"`
	}
)

// These are the maximum values of the query parameter n.
const (
	mostEntries = 1000
	mostLetters = 1000
	mostKeys    = 5000
	mostSlots   = 1000
)

var errUnknown = fmt.Errorf("nothing is known yet: this node has not been able to read the election's state; see /api/v1/status")

// fresh returns the part of the current Snapshot that the caller may see. It returns an error if the state is unknown.
func (a *API) fresh(r *http.Request) (diagnose.Snapshot, error) {
	snap, known := a.Watch.Snapshot(r.Context())
	if !known {
		return snap, fmt.Errorf("%w: %s", errUnknown, snap.Error)
	}
	return state.Listed(a.seen(r, snap)), nil
}

func (a *API) askStatus(r *http.Request) (any, error) {
	snap, known := a.Watch.Snapshot(r.Context())
	return statusReply{state.Listed(a.seen(r, snap)), known}, nil
}

func (a *API) askLeader(r *http.Request) (any, error) {
	snap, err := a.fresh(r)
	return leaderReply{snap.Leader, snap.Vacancy, snap.Paused, snap.LockKey, snap.Age, snap.Error}, err
}

func (a *API) askNodes(r *http.Request) (any, error) {
	snap, err := a.fresh(r)
	return nodesReply{snap.Nodes, snap.Age, snap.Error}, err
}

func (a *API) askJobs(r *http.Request) (any, error) {
	snap, err := a.fresh(r)
	return jobsReply{diagnose.Undefined(snap.Jobs), snap.Age, snap.Error}, err
}

func (a *API) askJob(r *http.Request) (any, error) {
	snap, err := a.fresh(r)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("job")
	for _, j := range snap.Jobs {
		if j.Name == name {
			return j, nil
		}
	}
	return nil, &operate.Coded{Code: "no_job", Kind: operate.ErrNotFound, Err: fmt.Errorf("no such job: %q: see /api/v1/jobs", clip(name))}
}

func (a *API) askHistory(r *http.Request) (any, error) {
	n, err := numberParam(r, "n", 20, mostEntries)
	if err != nil {
		return nil, err
	}
	before := r.URL.Query().Get("before")
	if !operate.IsEntryID(before) {
		return nil, badRequest("before: %q is not an id of an entry: write the id in \"before\" of an earlier answer", before)
	}
	entries, err := a.Node.History(r.Context(), r.PathValue("job"), before, n)
	if err != nil {
		return nil, err
	}
	reply := historyReply{Entries: append([]operate.Entry{}, a.seenEntries(r, entries)...)}
	if len(entries) == n {
		reply.Before = entries[n-1].ID
	}
	return reply, nil
}

func (a *API) askRun(r *http.Request) (any, error) {
	run, err := a.Node.Run(r.Context(), r.PathValue("job"), r.PathValue("run"))
	if err == nil && !a.Auth.MaySee(r) {
		run.Run = *state.PublicRun(&run.Run)
	}
	return run, err
}

func (a *API) askAcceptance(r *http.Request) (any, error) {
	return a.Node.Acceptance(r.Context(), r.PathValue("job"))
}

func (a *API) askOutput(r *http.Request) (any, error) {
	from, err := numberParam(r, "from", 0, 1<<60)
	if err != nil {
		return nil, err
	}
	o, err := a.Node.Printed(r.Context(), r.PathValue("job"), r.PathValue("run"))
	if err != nil {
		return nil, err
	}
	reply := outputReply{Offset: max(o.Dropped, 0), Running: o.Running}
	text := o.Text
	if skip := int64(from) - reply.Offset; skip > 0 {
		skip = min(skip, int64(len(text)))
		text, reply.Offset = text[skip:], reply.Offset+skip
	}
	if o.Running { // the output may end within a character, whose rest comes later
		for cut := 0; cut < utf8.UTFMax && len(text) > 0; cut++ {
			if last, size := utf8.DecodeLastRuneInString(text); last != utf8.RuneError || size != 1 {
				break
			}
			text = text[:len(text)-1]
		}
	}
	reply.Next = reply.Offset + int64(len(text))
	reply.Text = strings.ToValidUTF8(text, "\uFFFD")
	return reply, nil
}

func (a *API) askNext(r *http.Request) (any, error) {
	n, err := numberParam(r, "n", 10, mostSlots)
	if err != nil {
		return nil, err
	}
	from, err := timeParam(r, "from", time.Now())
	if err != nil {
		return nil, err
	}
	return a.Node.Next(r.Context(), r.PathValue("job"), from, n)
}

func (a *API) askEvents(r *http.Request) (any, error) {
	n, err := numberParam(r, "n", 50, mostEntries)
	if err != nil {
		return nil, err
	}
	events, err := a.Node.Events(r.Context(), n)
	return eventsReply{append([]diagnose.Event{}, events...)}, err
}

func (a *API) askExplain(r *http.Request) (any, error) {
	return a.Node.Explain(r.Context(), r.PathValue("node"))
}

func (a *API) askSamples(r *http.Request) (any, error) {
	since, err := timeParam(r, "since", time.Now().Add(-time.Hour))
	if err != nil {
		return nil, err
	}
	samples, err := a.Node.Samples(r.Context(), since)
	if len(samples) == 0 && err != nil {
		return nil, err
	}
	return samplesReply{append([]operate.Sample{}, samples...), errorText(err)}, nil
}

func (a *API) askRuns(r *http.Request) (any, error) {
	all, err := a.Node.Recent(r.Context())
	if len(all) == 0 && err != nil {
		return nil, err
	}
	reply := runsReply{Jobs: map[string][]operate.Brief{}, Error: errorText(err)}
	for name, runs := range all {
		if !a.Auth.MaySee(r) {
			runs = state.PublicBriefs(runs)
		}
		reply.Jobs[name] = append([]operate.Brief{}, runs...)
	}
	return reply, nil
}

func (a *API) askLetters(r *http.Request) (any, error) {
	f, err := letterFilter(r)
	n, wrong := numberParam(r, "n", 50, mostLetters)
	switch {
	case err != nil:
		return nil, err
	case wrong != nil:
		return nil, wrong
	}
	letters, err := a.Node.Letters(r.Context(), f, n)
	if len(letters) == 0 && err != nil {
		return nil, err
	}
	return lettersReply{append([]operate.Letter{}, letters...), errorText(err)}, nil
}

func (a *API) askLetter(r *http.Request) (any, error) {
	letters, err := a.Node.Letters(r.Context(), operate.LetterFilter{
		ID: r.PathValue("id"), Database: r.URL.Query().Get("database"), Whole: true,
	}, 1)
	switch {
	case err != nil:
		return nil, err
	case len(letters) == 0:
		return nil, &operate.Coded{Code: "no_letter", Kind: operate.ErrNotFound,
			Err: fmt.Errorf("no such dead letter: %s", clip(r.PathValue("id")))}
	}
	return letters[0], nil
}

func (a *API) askKeys(r *http.Request) (any, error) {
	f, err := letterFilter(r)
	if err != nil {
		return nil, err
	}
	keys, err := a.Node.LetterKeys(r.Context(), f, mostKeys+1)
	more := len(keys) > mostKeys
	return keysReply{append([]operate.LetterKey{}, keys[:min(len(keys), mostKeys)]...), more}, err
}

func (a *API) askReasons(r *http.Request) (any, error) {
	f, err := letterFilter(r)
	if err != nil {
		return nil, err
	}
	reasons, err := a.Node.Reasons(r.Context(), f)
	if len(reasons) == 0 && err != nil {
		return nil, err
	}
	return reasonsReply{append([]operate.LetterReason{}, reasons...), errorText(err)}, nil
}

func letterFilter(r *http.Request) (f operate.LetterFilter, err error) {
	q := r.URL.Query()
	f = operate.LetterFilter{
		Job: q.Get("job"), Database: q.Get("database"), Text: q.Get("text"), Reason: q.Get("reason"), Whole: q.Get("whole") == "true",
	}
	for name, d := range map[string]*time.Duration{"within": &f.Within, "older_than": &f.Before} {
		if text := q.Get(name); text != "" {
			if *d, err = time.ParseDuration(text); err != nil || *d < time.Second {
				return f, badRequest("%s: %q: write a duration of at least one second, such as 1h", name, text)
			}
		}
	}
	return f, nil
}

// numberParam returns the value of a numeric parameter. The value must be at least 1, or at least 0 if the default is 0. If the
// parameter is missing, numberParam returns the default, which is in the argument otherwise.
func numberParam(r *http.Request, name string, otherwise, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if least := min(otherwise, 1); err != nil || n < least || n > most {
		return 0, badRequest("%s: %q: write a number from %d to %d", name, text, least, most)
	}
	return n, nil
}

// timeParam returns the value of a parameter that is a time. If the parameter is missing, it returns the default, which is in the
// argument otherwise.
func timeParam(r *http.Request, name string, otherwise time.Time) (time.Time, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 1970 || at.Year() > 9000 {
		return at, badRequest("%s: %q: write a time such as 2006-01-02T15:04:05Z", name, text)
	}
	return at, nil
}

// strict returns an error if the query contains parameters that the endpoint does not have.
func strict(r *http.Request, known []parameter) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest("the query cannot be read: %v", err)
	}
	for name, values := range q {
		if !slices.ContainsFunc(known, func(p parameter) bool { return p.name == name }) {
			return badRequest("there is no parameter %q here: see %s/openapi.json", clip(name), Root)
		}
		if len(values) > 1 {
			return badRequest("the parameter %q is given %d times", name, len(values))
		}
	}
	return nil
}

func badRequest(format string, args ...any) error {
	return web.Refuse(http.StatusBadRequest, fmt.Sprintf(format, args...))
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// clip shortens a text from the request, for use in an error.
func clip(s string) string { return text.Clip(text.OneLine(s), 200) }
