package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/job"
	"baton/internal/operate"
	"baton/internal/status"
)

const (
	// deskPlaces bound what pages and programs ask of Redis at a time, databasePlaces what
	// they ask of databases: the leader's work goes first.
	deskPlaces     = 8
	databasePlaces = 2
	// recordShown is how much of a long record a list has.
	recordShown = 500
	// orderWait is how long an order waits for what it brings about, unless it says so.
	orderWait = 30 * time.Second
)

// desk answers pages and programs for a node, over the node's own connections to Redis,
// and by the configuration that is in force. To databases it has some of its own.
type desk struct {
	node      *node
	redis     chan struct{}
	databases chan struct{}
}

var (
	_ operate.Desk    = (*desk)(nil)
	_ operate.Inquiry = (*desk)(nil)
)

func newDesk(n *node) *desk {
	return &desk{node: n, redis: make(chan struct{}, deskPlaces), databases: make(chan struct{}, databasePlaces)}
}

// remote is a look at the election over the node's connections, which stay open.
func (d *desk) remote() *Remote {
	n := d.node
	n.mu.Lock()
	defer n.mu.Unlock()
	return &Remote{
		config: n.inventory.config, store: n.store, venue: n.venue, own: n.snapshot,
		election: n.venue.Election(), ledger: n.venue.Ledger(n.store),
	}
}

// enter waits for a place; the caller must free it.
func enter(ctx context.Context, places chan struct{}) (free func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("too much is asked of this node at a time: %w", context.Cause(ctx))
	}
}

// asking does something with the election.
func asking[T any](ctx context.Context, d *desk, do func(*Remote) (T, error)) (answer T, err error) {
	free, err := enter(ctx, d.redis)
	if err != nil {
		return answer, err
	}
	defer free()
	answer, err = do(d.remote())
	return answer, d.coded(err)
}

// reading does something with the dead letters.
func reading[T any](ctx context.Context, d *desk, do func(*Dead) (T, error)) (answer T, err error) {
	free, err := enter(ctx, d.databases)
	if err != nil {
		return answer, err
	}
	defer free()
	dead, leave, err := d.node.takeLetters()
	if err != nil {
		return answer, err
	}
	defer leave()
	answer, err = do(dead)
	return answer, d.coded(err)
}

// History has the entries of a job's history.
func (d *desk) History(ctx context.Context, name, before string, n int) ([]operate.Entry, error) {
	return asking(ctx, d, func(r *Remote) ([]operate.Entry, error) {
		v, err := r.under(name)
		if err != nil {
			return nil, err
		}
		history, err := v.ledger.HistoryBefore(ctx, name, before, n)
		entries := make([]operate.Entry, len(history))
		for i := range history {
			e := jobEntryOf(&history[i])
			entries[i] = operate.Entry{ID: history[i].Entry, At: e.At, Run: e.Run, Missed: e.Missed}
		}
		return entries, err
	})
}

// mostOutput is as much of one run's output as there ever is, and some more.
const mostOutput = 2 << 20

// Output has what a run has printed.
func (d *desk) Output(ctx context.Context, name, runID string) (operate.Output, error) {
	return asking(ctx, d, func(r *Remote) (o operate.Output, err error) {
		v, err := r.under(name)
		if err != nil {
			return o, err
		}
		// The state is asked for first: of a run that has ended this is all.
		run, err := whichRun(ctx, r, JobLogs{Job: name, RunID: runID})
		if err != nil {
			return o, err
		}
		o.Running = run.Run.State == string(job.StateRunning)
		for at, first := int64(0), true; len(o.Text) < mostOutput; first = false {
			piece, err := v.ledger.ReadOutput(ctx, name, run.Run.ID, at)
			if err != nil {
				return o, err
			}
			if first {
				o.Dropped = piece.Offset
			}
			if len(piece.Text) == 0 {
				break
			}
			if piece.Offset != at && !first { // what came before is gone by now
				o.Text, o.Dropped = "", piece.Offset
			}
			o.Text += string(piece.Text)
			at = piece.Offset + int64(len(piece.Text))
		}
		if o.Text == "" && !o.Running {
			o.Text = run.Run.Output // the end is in the history
		}
		return o, nil
	})
}

// Run tells how a run stands.
func (d *desk) Run(ctx context.Context, name, runID string) (operate.JobRun, error) {
	return asking(ctx, d, func(r *Remote) (operate.JobRun, error) { return r.Run(ctx, name, runID) })
}

// Samples tells how far the flushes were behind.
func (d *desk) Samples(ctx context.Context, since time.Time) ([]operate.Sample, error) {
	free, err := enter(ctx, d.redis)
	if err != nil {
		return nil, err
	}
	defer free()
	return d.node.samples(ctx, since)
}

// Events has the history of the election.
func (d *desk) Events(ctx context.Context, n int) ([]status.Event, error) {
	return asking(ctx, d, func(r *Remote) ([]status.Event, error) {
		ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
		defer cancel()
		p, err := r.election.Picture(ctx, n)
		return eventsOf(p), err
	})
}

// Next tells when a job is due.
func (d *desk) Next(_ context.Context, name string, from time.Time, n int) (operate.Coming, error) {
	coming, err := Next(d.remote().config, name, from, n)
	return coming, d.coded(err)
}

// Explain tells why a node leads, or does not.
func (d *desk) Explain(ctx context.Context, node string) (operate.Explanation, error) {
	return asking(ctx, d, func(r *Remote) (operate.Explanation, error) {
		return r.Explain(ctx, node), nil
	})
}

func deadFilter(f operate.LetterFilter) DeadFilter {
	return DeadFilter{Job: f.Job, Database: f.Database, Within: f.Within, Before: f.Before, Text: f.Text}
}

// Letters are dead letters.
func (d *desk) Letters(ctx context.Context, f operate.LetterFilter, n int) ([]operate.Letter, error) {
	return reading(ctx, d, func(dead *Dead) ([]operate.Letter, error) {
		if f.ID != "" {
			l, err := dead.Find(ctx, f.ID, f.Database)
			if err != nil {
				return nil, err
			}
			return []operate.Letter{statusLetter(l)}, nil
		}
		cut := recordShown
		if f.Whole {
			cut = 0
		}
		found, err := dead.List(ctx, deadFilter(f), n, cut)
		letters := make([]operate.Letter, len(found))
		for i, l := range found {
			letters[i] = statusLetter(l)
		}
		return letters, err
	})
}

func statusLetter(l DeadLetter) operate.Letter {
	return operate.Letter{ID: l.ID, Job: l.Job, Database: l.Database, BatchID: l.BatchID, At: l.At, Error: l.Error, Record: string(l.Record)}
}

// LetterKeys names dead letters.
func (d *desk) LetterKeys(ctx context.Context, f operate.LetterFilter, n int) ([]operate.LetterKey, error) {
	return reading(ctx, d, func(dead *Dead) ([]operate.LetterKey, error) {
		found, err := dead.Keys(ctx, deadFilter(f))
		return found[:min(n, len(found))], err
	})
}

// Reasons counts dead letters by their reason.
func (d *desk) Reasons(ctx context.Context, f operate.LetterFilter) ([]operate.LetterReason, error) {
	return reading(ctx, d, func(dead *Dead) ([]operate.LetterReason, error) { return dead.Reasons(ctx, deadFilter(f)) })
}

// coded gives errors of this package the kinds and words that the API has for them.
func (d *desk) coded(err error) error {
	if err == nil {
		return nil
	}
	if _, given := errors.AsType[*operate.Coded](err); given {
		return err
	}
	for _, known := range knownErrors() {
		if errors.Is(err, known.sentinel) {
			return &operate.Coded{Code: known.code, Kind: known.kind, Err: err}
		}
	}
	return err
}

// knownError is a sentinel, and how the API tells it.
type knownError struct {
	sentinel error
	code     string
	kind     error
}

// knownErrors are those that keep being themselves over HTTP.
func knownErrors() []knownError {
	return []knownError{
		{ErrNoLeader, "nobody_leads", operate.ErrNobodyLeads},
		{ErrNoJob, "no_job", operate.ErrNotFound},
		{ErrNoRun, "no_run", operate.ErrNotFound},
		{ErrNoLetter, "no_letter", operate.ErrNotFound},
		{errManyLetters, "many_letters", operate.ErrRefused},
		{ErrDeadUsage, "dead_usage", operate.ErrInvalid},
		{ErrNoOutput, "no_output", operate.ErrNotFound},
		{ErrRunLost, "run_lost", operate.ErrNotFound},
	}
}

// lockOf is a remote's look at another election of the same configuration.
func (r *Remote) lockOf(lockKey string) (*Remote, error) {
	if lockKey == "" || lockKey == r.config.Election.LockKey {
		return r, nil
	}
	if !slices.Contains(site.LockKeys(r.config), lockKey) {
		return nil, fmt.Errorf("%w: no job of the configuration has the lock %q", operate.ErrInvalid, lockKey)
	}
	other := *r
	other.venue = r.venue.At(lockKey)
	other.config = onLock(r.config, lockKey)
	other.election, other.ledger = other.venue.Election(), other.venue.Ledger(r.store)
	return &other, nil
}

func onLock(c config.Config, lockKey string) config.Config {
	c.Election.LockKey = lockKey
	return c
}
