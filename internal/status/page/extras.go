package page

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/state"
	"baton/internal/text"
)

const (
	// samplesFor and lettersFor are how long what the servers have answered serves all
	// pages: plots move slowly, and databases have other work.
	samplesFor = 5 * time.Second
	lettersFor = 15 * time.Second
	// extrasWithin is how long a page waits for what it can do without.
	extrasWithin = 200 * time.Millisecond
	// eventsOnTimeline is how much of the election's history the timeline shows.
	eventsOnTimeline = 300
	// eventsOfLock is how much of the history of each further lock is shown.
	eventsOfLock = 100
	// lettersCounted is how many dead letters the first page counts.
	lettersCounted = 100
)

// extras is what the first page shows beyond the Snapshot.
type extras struct {
	samples []operate.Sample
	recent  map[string][]operate.Brief
	letters tally
	others  map[string][]diagnose.Event // of further locks
}

// tally is how many dead letters wait.
type tally struct {
	text    string // "12 dead letters"; empty: none that is known
	unknown bool   // not everything could be counted
}

// tallyOf counts dead letters, as far as the databases answered.
func tallyOf(letters []operate.Letter, err error) tally {
	t := tally{unknown: err != nil && !errors.Is(err, operate.ErrInvalid)} // invalid: there is no database
	switch {
	case len(letters) == lettersCounted:
		t.text = text.Number(lettersCounted) + " dead letters or more"
	case len(letters) > 0:
		t.text = text.Count(len(letters), "dead letter")
	}
	return t
}

// kept is an answer of the servers that many pages share. A page waits for the first one
// for a moment, and is shown an older one while a new one is fetched.
type kept[T any] struct {
	fetch func(context.Context) (T, error)
	lasts time.Duration

	mu     sync.Mutex
	value  T
	asked  time.Time
	flight chan struct{}
}

// get is the answer as far as there is one. life ends the asking, busy waits for it.
func (k *kept[T]) get(ctx context.Context, w *state.State) T {
	k.mu.Lock()
	first := k.asked.IsZero()
	if k.flight == nil && (first || time.Since(k.asked) > k.lasts) {
		flight := make(chan struct{})
		if w.Begin(func() { k.ask(w, flight) }) {
			k.flight, k.asked = flight, time.Now()
		}
	}
	flight := k.flight
	k.mu.Unlock()
	if first && flight != nil {
		patience := time.NewTimer(extrasWithin)
		defer patience.Stop()
		select {
		case <-flight:
		case <-ctx.Done():
		case <-patience.C:
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.value
}

// expire has the answer asked for anew, at most once a second.
func (k *kept[T]) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.flight == nil && time.Since(k.asked) > time.Second {
		k.asked = time.Time{}
	}
}

func (k *kept[T]) ask(w *state.State, flight chan struct{}) {
	ctx, cancel := context.WithTimeout(w.Life, state.SourceTimeout)
	defer cancel()
	defer func() {
		p := recover() // a panic here would end the daemon, and its leadership with it
		if p != nil {
			w.Log.Error("what the page shows beside the status panicked", zap.Any("panic", p))
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.flight = nil
		close(flight)
	}()
	value, err := k.fetch(ctx)
	if err != nil {
		w.Log.Debug("a part of the page cannot be brought up to date", zap.Error(err))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil || !isNil(value) {
		k.value = value
	}
}

// isNil: nothing was answered. Of two databases one may have.
func isNil[T any](v T) bool {
	switch v := any(v).(type) {
	case []operate.Sample:
		return v == nil
	case map[string][]operate.Brief:
		return len(v) == 0
	case []operate.Letter:
		return v == nil
	case []operate.LetterReason:
		return v == nil
	case []diagnose.Event:
		return v == nil
	case map[string][]diagnose.Event:
		return len(v) == 0
	}
	return false
}

// answers are those of the servers that all readers of pages share.
type answers struct {
	ask     operate.Node
	samples kept[[]operate.Sample]
	recent  kept[map[string][]operate.Brief]
	letters kept[tally]
	reasons kept[[]operate.LetterReason]
	events  kept[[]diagnose.Event]
	others  kept[map[string][]diagnose.Event]

	mu    sync.Mutex
	byJob map[string]*kept[[]operate.Letter]
}

func newAnswers(d operate.Node) *answers {
	if d == nil {
		return nil
	}
	events := func(ctx context.Context) ([]diagnose.Event, error) { return d.Events(ctx, eventsOnTimeline) }
	return &answers{
		events: kept[[]diagnose.Event]{lasts: samplesFor, fetch: events},
		others: kept[map[string][]diagnose.Event]{lasts: samplesFor, fetch: func(ctx context.Context) (map[string][]diagnose.Event, error) {
			return d.LockEvents(ctx, eventsOfLock)
		}},
		ask: d,
		samples: kept[[]operate.Sample]{lasts: samplesFor, fetch: func(ctx context.Context) ([]operate.Sample, error) {
			return d.Samples(ctx, time.Now().Add(-plotSpan))
		}},
		recent: kept[map[string][]operate.Brief]{lasts: samplesFor, fetch: d.Recent},
		reasons: kept[[]operate.LetterReason]{lasts: lettersFor, fetch: func(ctx context.Context) ([]operate.LetterReason, error) {
			return d.Reasons(ctx, operate.LetterFilter{})
		}},
		letters: kept[tally]{lasts: lettersFor, fetch: func(ctx context.Context) (tally, error) {
			letters, err := d.Letters(ctx, operate.LetterFilter{}, lettersCounted)
			return tallyOf(letters, err), err
		}},
	}
}

// extras are those answers.
func (d *answers) extras(ctx context.Context, w *state.State, locks []diagnose.Lock) extras {
	if d == nil {
		return extras{}
	}
	return extras{
		samples: d.samples.get(ctx, w), recent: d.recent.get(ctx, w), letters: d.letters.get(ctx, w), others: d.histories(ctx, w, locks),
	}
}

// histories are those of further locks. The state has their last events: where one is newer than the histories, these are
// asked for again, lest a handover look like the end of a leader.
func (d *answers) histories(ctx context.Context, w *state.State, locks []diagnose.Lock) map[string][]diagnose.Event {
	if len(locks) == 0 {
		return nil
	}
	known := d.others.get(ctx, w)
	if slices.ContainsFunc(locks, func(l diagnose.Lock) bool {
		events := known[l.Key]
		return l.Last != nil && (len(events) == 0 || l.Last.At.After(events[0].At))
	}) {
		d.others.expire()
		known = d.others.get(ctx, w)
	}
	return known
}

// before is a history of the election that goes back further than the latest events, if
// there is one. Nothing is between what both have.
func (d *answers) before(ctx context.Context, w *state.State, latest []diagnose.Event) []diagnose.Event {
	if d == nil || len(latest) == 0 {
		return latest
	}
	last := latest[len(latest)-1]
	known := d.events.get(ctx, w)
	at := slices.IndexFunc(known, func(e diagnose.Event) bool {
		return e.At.Equal(last.At) && e.Event == last.Event && e.NodeID == last.NodeID && e.Epoch == last.Epoch
	})
	if at < 0 {
		return latest
	}
	all := slices.Concat(latest, known[at+1:])
	return all[:min(len(all), eventsOnTimeline)]
}

// lettersOf are the latest dead letters of a job that there is.
func (d *answers) lettersOf(ctx context.Context, w *state.State, job string) []operate.Letter {
	d.mu.Lock()
	if d.byJob == nil {
		d.byJob = map[string]*kept[[]operate.Letter]{}
	}
	k := d.byJob[job]
	if k == nil {
		k = &kept[[]operate.Letter]{lasts: lettersFor, fetch: func(ctx context.Context) ([]operate.Letter, error) {
			return d.ask.Letters(ctx, operate.LetterFilter{Job: job}, lettersOfJob)
		}}
		d.byJob[job] = k
	}
	d.mu.Unlock()
	return k.get(ctx, w)
}

// forget has the dead letters asked for anew: some were replayed or dropped.
func (d *answers) forget() {
	if d == nil {
		return
	}
	d.mu.Lock()
	clear(d.byJob)
	d.mu.Unlock()
	d.letters.mu.Lock()
	d.letters.asked = time.Time{}
	d.letters.mu.Unlock()
	d.reasons.mu.Lock()
	d.reasons.asked = time.Time{}
	d.reasons.mu.Unlock()
}
