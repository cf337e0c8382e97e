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
	// samplesFor and lettersFor are how long an answer of the servers serves all pages:
	// plots move slowly, and databases have other work.
	samplesFor = 5 * time.Second
	lettersFor = 15 * time.Second
	// extrasWithin bounds a page's wait for its optional parts.
	extrasWithin = 200 * time.Millisecond
	// eventsOnTimeline bounds the events of the election on the timeline.
	eventsOnTimeline = 300
	// eventsOfLock bounds the events of each further lock.
	eventsOfLock = 100
	// lettersCounted bounds the dead letters that the first page counts.
	lettersCounted = 100
)

// extras has the data of the first page that the Snapshot does not have.
type extras struct {
	samples []operate.Sample
	recent  map[string][]operate.Brief
	letters tally
	others  map[string][]diagnose.Event // of further locks
}

// tally is the number of dead letters that wait, in words.
type tally struct {
	text    string // "12 dead letters"; empty: no known ones
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

// cached is an answer of the servers that many pages share. A page waits a moment for the first
// answer. Later it gets the old answer while a new one is being fetched.
type cached[T any] struct {
	fetch func(context.Context) (T, error)
	lasts time.Duration

	mu     sync.Mutex
	value  T
	asked  time.Time
	flight chan struct{}
}

// get returns the last answer, which may be the zero value. It starts fetching a new one if the
// last is too old. The fetch ends with the server, which waits for it.
func (k *cached[T]) get(ctx context.Context, w *state.State) T {
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

// expire makes the next get fetch the answer again, at most once a second.
func (k *cached[T]) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.flight == nil && time.Since(k.asked) > time.Second {
		k.asked = time.Time{}
	}
}

func (k *cached[T]) ask(w *state.State, flight chan struct{}) {
	ctx, cancel := context.WithTimeout(w.Life, state.SourceTimeout)
	defer cancel()
	defer func() {
		p := recover() // a panic here would end the daemon, and its leadership with it
		if p != nil {
			w.Log.Error("the code for the rest of the page panicked", zap.Any("panic", p))
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

// isNil reports whether an answer is empty. An answer with an error need not be: one of two
// databases may have answered.
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

// answers has the servers' answers that all readers of pages share.
type answers struct {
	ask     operate.Node
	samples cached[[]operate.Sample]
	recent  cached[map[string][]operate.Brief]
	letters cached[tally]
	reasons cached[[]operate.LetterReason]
	events  cached[[]diagnose.Event]
	others  cached[map[string][]diagnose.Event]

	mu    sync.Mutex
	byJob map[string]*cached[[]operate.Letter]
}

func newAnswers(d operate.Node) *answers {
	if d == nil {
		return nil
	}
	events := func(ctx context.Context) ([]diagnose.Event, error) { return d.Events(ctx, eventsOnTimeline) }
	return &answers{
		events: cached[[]diagnose.Event]{lasts: samplesFor, fetch: events},
		others: cached[map[string][]diagnose.Event]{lasts: samplesFor,
			fetch: func(ctx context.Context) (map[string][]diagnose.Event, error) { return d.LockEvents(ctx, eventsOfLock) }},
		ask: d,
		samples: cached[[]operate.Sample]{lasts: samplesFor, fetch: func(ctx context.Context) ([]operate.Sample, error) {
			return d.Samples(ctx, time.Now().Add(-plotSpan))
		}},
		recent: cached[map[string][]operate.Brief]{lasts: samplesFor, fetch: d.Recent},
		reasons: cached[[]operate.LetterReason]{lasts: lettersFor, fetch: func(ctx context.Context) ([]operate.LetterReason, error) {
			return d.Reasons(ctx, operate.LetterFilter{})
		}},
		letters: cached[tally]{lasts: lettersFor, fetch: func(ctx context.Context) (tally, error) {
			letters, err := d.Letters(ctx, operate.LetterFilter{}, lettersCounted)
			return tallyOf(letters, err), err
		}},
	}
}

// extras returns the current answers for a page.
func (d *answers) extras(ctx context.Context, w *state.State, locks []diagnose.Lock) extras {
	if d == nil {
		return extras{}
	}
	return extras{
		samples: d.samples.get(ctx, w), recent: d.recent.get(ctx, w), letters: d.letters.get(ctx, w), others: d.histories(ctx, w, locks),
	}
}

// histories returns the events of further locks. The state has each lock's last event. If one is newer than the histories,
// histories fetches them again. Otherwise the page would show a handover as the end of a leader.
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

// before extends the latest events into the past by a known history of the election. It does so only
// if the two overlap, so that no event is missing between them.
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

// lettersOf returns the latest dead letters of an existing job.
func (d *answers) lettersOf(ctx context.Context, w *state.State, job string) []operate.Letter {
	d.mu.Lock()
	if d.byJob == nil {
		d.byJob = map[string]*cached[[]operate.Letter]{}
	}
	k := d.byJob[job]
	if k == nil {
		k = &cached[[]operate.Letter]{lasts: lettersFor, fetch: func(ctx context.Context) ([]operate.Letter, error) {
			return d.ask.Letters(ctx, operate.LetterFilter{Job: job}, lettersOfJob)
		}}
		d.byJob[job] = k
	}
	d.mu.Unlock()
	return k.get(ctx, w)
}

// forget makes the next page fetch the dead letters again, after a replay or drop of some.
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
