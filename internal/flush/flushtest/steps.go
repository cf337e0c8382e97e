package flushtest

import (
	"context"
	"errors"
	"sync"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// Step names a step of the protocol at which the process may die, the connection may break or the leadership may end. Tests stop a run at
// each step.
type Step string

// The steps, in the order of a run. From StepPageRead to StepDone they repeat for every page. The reader may be some pages ahead of the
// writer, and StepDone may be one page behind the writer. A transaction that is retried repeats its steps.
const (
	StepCompiled       Step = "compiled"         // catalogue read, mapping compiled
	StepBeforeTakeOver Step = "before-take-over" // the run is about to claim the fence
	StepTakenOver      Step = "taken-over"       // the claim of the fence is committed
	StepBeforeStage    Step = "before-stage"     // a new stage id is chosen
	StepPositionRead   Step = "position-read"    // the source's position in the database is known
	StepStaged         Step = "staged"           // the stage is frozen in Redis
	StepRowsFound      Step = "rows-found"       // some or all rows of the changed keys are known
	StepPageRead       Step = "page-read"        // a page has been read
	StepBeforeMarks    Step = "before-marks"     // the run is about to read the totals of counters in the database
	StepMarksRead      Step = "marks-read"       // these totals are read
	StepConverted      Step = "converted"        // a large page is a batch in its lane; a small page will soon be one
	StepAllRead        Step = "all-read"         // the reader has read the whole stage
	StepBeforeApply    Step = "before-apply"     // the run is about to write the batch
	StepBeforeTurn     Step = "before-turn"      // rows that may be written ahead are written; earlier batches may not be committed yet
	StepInTurn         Step = "in-turn"          // the earlier batches are committed
	StepApplied        Step = "applied"          // the batch is committed
	StepBeforeDone     Step = "before-done"      // the run is about to remove the page from the stage
	StepDone           Step = "done"             // the page is removed from the stage
	StepBeforeSweep    Step = "before-sweep"     // a pass over a scan is complete, and committed
	StepCounted        Step = "counted"          // the number of vanished rows is known
	StepStaleCounted   Step = "stale-counted"    // not too many rows have vanished, or some are deleted
	StepStaleRead      Step = "stale-read"       // a page of vanished rows is read
	StepRechecked      Step = "rechecked"        // the page was looked for again in Redis
	StepSwept          Step = "swept"            // the last vanished row is deleted
	StepBeforeDiscard  Step = "before-discard"   // every page is committed
	StepDiscarded      Step = "discarded"        // the stage is removed
)

// Steps returns every step, in order.
func Steps() []Step {
	return []Step{
		StepCompiled, StepBeforeTakeOver, StepTakenOver, StepBeforeStage, StepPositionRead, StepStaged,
		StepRowsFound, StepPageRead, StepBeforeMarks, StepMarksRead, StepConverted, StepAllRead,
		StepBeforeApply, StepBeforeTurn, StepInTurn, StepApplied, StepBeforeDone, StepDone,
		StepBeforeSweep, StepCounted, StepStaleCounted, StepStaleRead, StepRechecked, StepSwept, StepBeforeDiscard, StepDiscarded,
	}
}

// Observed returns a configuration whose pipeline calls observe at every step, never twice at the same time. An error ends the run at that
// step. Observed wraps the sources and the database of cfg, and the pipeline does not notice this.
func Observed(cfg flush.Config, observe func(Step) error) flush.Config {
	o := &observer{observe: observe}
	open, newID := cfg.NewSources, cfg.NewID
	cfg.Sink = &sink{cfg.Sink, o}
	cfg.NewID = func() (string, error) {
		if err := o.at(StepBeforeStage); err != nil {
			return "", err
		}
		return newID()
	}
	cfg.NewSources = func(inputs []string) ([]flush.Source, error) {
		sources, err := open(inputs)
		if err != nil {
			return nil, err
		}
		decorated := make([]flush.Source, len(sources))
		for i, s := range sources {
			decorated[i] = o.source(s)
		}
		return decorated, o.at(StepCompiled)
	}
	return cfg
}

type observer struct {
	mu      sync.Mutex
	observe func(Step) error
}

func (o *observer) at(s Step) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.observe(s)
}

// before observes a step that begins an action. It also returns an error if ctx has ended.
func (o *observer) before(ctx context.Context, s Step) error {
	if err := o.at(s); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// source wraps a source. If the source is a flush.Sweeper or a flush.KeySweeper, the result is one too.
func (o *observer) source(s flush.Source) flush.Source {
	decorated := &source{s, o}
	if sweeps, ok := s.(flush.Sweeper); ok {
		return &sweeper{decorated, sweeps}
	}
	if sweeps, ok := s.(flush.KeySweeper); ok {
		return &keySweeper{decorated, sweeps}
	}
	return decorated
}

type source struct {
	flush.Source
	*observer
}

// Stage implements flush.Source.
func (s *source) Stage(ctx context.Context, newID, position string) (flush.Stage, bool, error) {
	st, ok, err := s.Source.Stage(ctx, newID, position)
	if err == nil && ok {
		err = s.at(StepStaged)
	}
	return st, ok, err
}

// Read implements flush.Source.
func (s *source) Read(ctx context.Context, st flush.Stage, yield func(flush.Page) error) error {
	err := s.Source.Read(ctx, st, func(p flush.Page) error {
		if err := s.at(StepPageRead); err != nil {
			return err
		}
		if err := yield(p); err != nil {
			return err
		}
		return s.at(StepConverted)
	})
	if err == nil {
		err = s.at(StepAllRead)
	}
	return err
}

// Done implements flush.Releaser. For a source that is no Releaser it does nothing.
func (s *source) Done(ctx context.Context, st flush.Stage, p flush.Page) error {
	if err := s.before(ctx, StepBeforeDone); err != nil {
		return err
	}
	if r, ok := s.Source.(flush.Releaser); ok {
		if err := r.Done(ctx, st, p); err != nil {
			return err
		}
	}
	return s.at(StepDone)
}

// Discard implements flush.Discarder. For a source that is no Discarder it does nothing.
func (s *source) Discard(ctx context.Context, st flush.Stage) error {
	if err := s.before(ctx, StepBeforeDiscard); err != nil {
		return err
	}
	if d, ok := s.Source.(flush.Discarder); ok {
		if err := d.Discard(ctx, st); err != nil {
			return err
		}
	}
	return s.at(StepDiscarded)
}

type sweeper struct {
	*source
	sweeps flush.Sweeper
}

// Finds implements flush.Sweeper.
func (s *sweeper) Finds(inputs []string) error { return s.sweeps.Finds(inputs) }

// Pass implements flush.Sweeper.
func (s *sweeper) Pass(st flush.Stage) (generation int64, missed error) { return s.sweeps.Pass(st) }

// StillMissing implements flush.Sweeper.
func (s *sweeper) StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error) {
	missing, err := s.sweeps.StillMissing(ctx, records)
	if err == nil {
		err = s.at(StepRechecked)
	}
	return missing, err
}

type keySweeper struct {
	*source
	sweeps flush.KeySweeper
}

// Finds implements flush.KeySweeper.
func (s *keySweeper) Finds(inputs []string) error { return s.sweeps.Finds(inputs) }

// Passed implements flush.KeySweeper.
func (s *keySweeper) Passed(st flush.Stage) flush.Passed { return s.sweeps.Passed(st) }

// Reread implements flush.KeySweeper.
func (s *keySweeper) Reread(changed flush.Changed, why string) { s.sweeps.Reread(changed, why) }

// Unaccounted implements flush.KeySweeper.
func (s *keySweeper) Unaccounted(ctx context.Context, records []row.Record) ([]row.Record, error) {
	return s.sweeps.Unaccounted(ctx, records)
}

// StillMissing implements flush.KeySweeper.
func (s *keySweeper) StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error) {
	missing, err := s.sweeps.StillMissing(ctx, records)
	if err == nil {
		err = s.at(StepRechecked)
	}
	return missing, err
}

type sink struct {
	flush.Sink
	*observer
}

// TakeOver implements flush.Sink.
func (s *sink) TakeOver(ctx context.Context, f flush.Fence) error {
	if err := s.before(ctx, StepBeforeTakeOver); err != nil {
		return err
	}
	if err := s.Sink.TakeOver(ctx, f); err != nil {
		return err
	}
	return s.at(StepTakenOver)
}

// Positions implements flush.Sink.
func (s *sink) Positions(ctx context.Context, f flush.Fence, shards []string) ([]string, error) {
	found, err := s.Sink.Positions(ctx, f, shards)
	if err == nil {
		err = s.at(StepPositionRead)
	}
	return found, err
}

// Marks implements flush.Sink.
func (s *sink) Marks(ctx context.Context, f flush.Fence, names []string) ([]string, error) {
	if err := s.before(ctx, StepBeforeMarks); err != nil {
		return nil, err
	}
	found, err := s.Sink.Marks(ctx, f, names)
	if err == nil {
		err = s.at(StepMarksRead)
	}
	return found, err
}

// Apply implements flush.Sink.
func (s *sink) Apply(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
	if err := s.before(ctx, StepBeforeApply); err != nil {
		return flush.Outcome{}, err
	}
	if turn := b.AwaitTurn; turn != nil {
		b.AwaitTurn = func(ctx context.Context) error { return s.turn(ctx, turn) }
	}
	out, err := s.Sink.Apply(ctx, f, p, b)
	if err == nil {
		err = s.at(StepApplied)
	}
	return out, err
}

func (s *sink) turn(ctx context.Context, turn func(context.Context) error) error {
	if err := s.before(ctx, StepBeforeTurn); err != nil {
		return err
	}
	if err := turn(ctx); err != nil {
		return err
	}
	return s.at(StepInTurn)
}

var errNoFinder = errors.New("this database finds no rows by their generation")

// CountStale implements flush.StaleFinder.
func (s *sink) CountStale(ctx context.Context, p *row.Plan, current int64) (stale, all int64, err error) {
	finder, ok := s.Sink.(flush.StaleFinder)
	if !ok {
		return 0, 0, errNoFinder
	}
	if err := s.before(ctx, StepBeforeSweep); err != nil {
		return 0, 0, err
	}
	if stale, all, err = finder.CountStale(ctx, p, current); err == nil {
		err = s.at(StepCounted)
	}
	return stale, all, err
}

// KeyRows implements flush.KeyLister.
func (s *sink) KeyRows(ctx context.Context, p *row.Plan, which flush.KeyRange) ([][]string, error) {
	lister, ok := s.Sink.(flush.KeyLister)
	if !ok {
		return nil, errNoFinder
	}
	if which.Behind == nil && which.Of == nil {
		if err := s.before(ctx, StepBeforeSweep); err != nil {
			return nil, err
		}
	}
	texts, err := lister.KeyRows(ctx, p, which)
	switch {
	case err != nil:
		return nil, err
	case which.Of != nil:
		return texts, s.at(StepRowsFound)
	case len(texts) == 0:
		return nil, s.at(StepSwept)
	}
	return texts, s.at(StepStaleRead)
}

// StaleRows implements flush.StaleFinder.
func (s *sink) StaleRows(ctx context.Context, p *row.Plan, current int64, behind []row.Value, limit int) ([][]string, error) {
	finder, ok := s.Sink.(flush.StaleFinder)
	if !ok {
		return nil, errNoFinder
	}
	if err := s.before(ctx, StepStaleCounted); err != nil {
		return nil, err
	}
	texts, err := finder.StaleRows(ctx, p, current, behind, limit)
	switch {
	case err != nil:
		return nil, err
	case len(texts) == 0:
		return nil, s.at(StepSwept)
	}
	return texts, s.at(StepStaleRead)
}
