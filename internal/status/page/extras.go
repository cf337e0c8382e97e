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
	// samplesFor and lettersFor are how long all pages share one answer of the servers. The times are long because plots change slowly, and
	// because databases have other work.
	samplesFor = 5 * time.Second
	lettersFor = 15 * time.Second
	// extrasWithin is the maximum time that a page waits for its optional parts.
	extrasWithin = 200 * time.Millisecond
	// eventsOnTimeline is the maximum number of the election's events on the timeline.
	eventsOnTimeline = 300
	// eventsOfLock is the maximum number of events of each further lock.
	eventsOfLock = 100
	// lettersCounted is the maximum number of dead letters that the first page counts.
	lettersCounted = 100
)

// extras contains the data on the first page that is not in the Snapshot.
type extras struct {
	samples []operate.Sample
	recent  map[string][]operate.Brief
	letters letterCount
	others  map[string][]diagnose.Event // the events of further locks
}

// letterCount is the number of waiting dead letters, as a text.
type letterCount struct {
	text    string // such as "12 dead letters"; empty if no letters are known
	unknown bool   // some letters could not be counted
}

// tallyOf counts the dead letters in the databases that answered.
func tallyOf(letters []operate.Letter, err error) letterCount {
	t := letterCount{unknown: err != nil && !errors.Is(err, operate.ErrInvalid)} // ErrInvalid means that there is no database
	switch {
	case len(letters) == lettersCounted:
		t.text = text.Number(lettersCounted) + " dead letters or more"
	case len(letters) > 0:
		t.text = text.Count(len(letters), "dead letter")
	}
	return t
}

// cached is an answer of the servers that many pages share. A page waits a short time for the first answer. Later a page gets the old
// answer while a new answer is being fetched.
type cached[T any] struct {
	fetch func(context.Context) (T, error)
	lasts time.Duration

	mu     sync.Mutex
	value  T
	asked  time.Time
	flight chan struct{}
}

// get returns the last answer, which may be the zero value. If the last answer is too old, get starts to fetch a new answer. The
// fetch is cancelled when the HTTP server ends, and the server waits for the end of the fetch.
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

// expire makes the next call of get fetch the answer again, but at most once per second.
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
		p := recover() // a panic here would end the daemon, and with it the daemon's leadership
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
		w.Log.Debug("cannot update a part of the page", zap.Error(err))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil || !isNil(value) {
		k.value = value
	}
}

// isNil reports whether an answer is empty. An answer with an error may not be empty, because one of two databases may have answered.
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

// cachedQueries contains the servers' answers that all readers of pages share.
type cachedQueries struct {
	ask     operate.Node
	samples cached[[]operate.Sample]
	recent  cached[map[string][]operate.Brief]
	letters cached[letterCount]
	reasons cached[[]operate.LetterReason]
	events  cached[[]diagnose.Event]
	others  cached[map[string][]diagnose.Event]

	mu    sync.Mutex
	byJob map[string]*cached[[]operate.Letter]
	kept  map[string]*cached[operate.KeptCount]
}

func newAnswers(d operate.Node) *cachedQueries {
	if d == nil {
		return nil
	}
	events := func(ctx context.Context) ([]diagnose.Event, error) { return d.Events(ctx, eventsOnTimeline) }
	return &cachedQueries{
		events: cached[[]diagnose.Event]{lasts: samplesFor, fetch: events},
		others: cached[map[string][]diagnose.Event]{lasts: samplesFor,
			fetch: func(ctx context.Context) (map[string][]diagnose.Event, error) { return d.LockEvents(ctx, eventsOfLock) }},
		ask: d, byJob: map[string]*cached[[]operate.Letter]{}, kept: map[string]*cached[operate.KeptCount]{},
		samples: cached[[]operate.Sample]{lasts: samplesFor, fetch: func(ctx context.Context) ([]operate.Sample, error) {
			return d.Samples(ctx, time.Now().Add(-plotSpan))
		}},
		recent: cached[map[string][]operate.Brief]{lasts: samplesFor, fetch: d.Recent},
		reasons: cached[[]operate.LetterReason]{lasts: lettersFor, fetch: func(ctx context.Context) ([]operate.LetterReason, error) {
			return d.Reasons(ctx, operate.LetterFilter{})
		}},
		letters: cached[letterCount]{lasts: lettersFor, fetch: func(ctx context.Context) (letterCount, error) {
			letters, err := d.Letters(ctx, operate.LetterFilter{}, lettersCounted)
			return tallyOf(letters, err), err
		}},
	}
}

// extras returns the current answers for a page.
func (d *cachedQueries) extras(ctx context.Context, w *state.State, locks []diagnose.Lock) extras {
	if d == nil {
		return extras{}
	}
	return extras{
		samples: d.samples.get(ctx, w), recent: d.recent.get(ctx, w), letters: d.letters.get(ctx, w), others: d.histories(ctx, w, locks),
	}
}

// histories returns the events of other locks, from a cache. The state contains the last event of each lock. If that event is newer than
// the cached events, histories fetches the events again. Otherwise the page would show a handover as the end of a leader.
func (d *cachedQueries) histories(ctx context.Context, w *state.State, locks []diagnose.Lock) map[string][]diagnose.Event {
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

// before adds older events from a known history of the election to the latest events. It does so only if the two lists overlap, so
// that no event is missing between them.
func (d *cachedQueries) before(ctx context.Context, w *state.State, latest []diagnose.Event) []diagnose.Event {
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
func (d *cachedQueries) lettersOf(ctx context.Context, w *state.State, job string) []operate.Letter {
	return ofJob(d, d.byJob, job, func(ctx context.Context) ([]operate.Letter, error) {
		return d.ask.Letters(ctx, operate.LetterFilter{Job: job}, lettersOfJob)
	}).get(ctx, w)
}

// keptOf counts the kept deleted rows of an existing job.
func (d *cachedQueries) keptOf(ctx context.Context, w *state.State, job string) operate.KeptCount {
	return ofJob(d, d.kept, job, func(ctx context.Context) (operate.KeptCount, error) { return d.ask.Kept(ctx, job) }).get(ctx, w)
}

// ofJob returns the cached answer about a job. It adds the answer to the map if the map lacks it.
func ofJob[T any](d *cachedQueries, known map[string]*cached[T], job string, fetch func(context.Context) (T, error)) *cached[T] {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known[job] == nil {
		known[job] = &cached[T]{lasts: lettersFor, fetch: fetch}
	}
	return known[job]
}

// forget makes the next page fetch the dead letters again, because letters were replayed or dropped.
func (d *cachedQueries) forget() {
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
