package flush

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// takeOverTries limits how often a run raises its epoch to take the fence.
const takeOverTries = 3

// verifyEvery is the age after which the catalogue is read again.
const verifyEvery = time.Second

// run is one execution of a pipeline.
type run struct {
	*Pipeline
	lead     Leadership
	fence    Fence
	m        *mapping.Mapping
	vanished *vanished
	result   Result
	fresh    bool   // the table's catalogue was read just now
	recorded string // the basis in the database: see basis
	adoption string // the recorded acceptance of its mapping: see guard
	since    int64  // the recorded first generation of its mapping: see Own

	// stop cancels the work of all shards, if there are several.
	stop context.CancelCauseFunc
	// connections has room for as many connections as the job may use: see Config.Lanes.
	connections chan struct{}
	// underway has room for the pages that are being written, or wait for that.
	underway chan struct{}
	// waiting has room for the small pages of all shards that may wait for conversion.
	waiting  chan struct{}
	looking  sync.Mutex // guards fresh and verified while shards are flushed
	counting sync.Mutex // guards result and taken, and calls of the configuration's functions
}

// errTableChanged: the table differs from the one that the mapping was compiled for.
var errTableChanged = errors.New("the table was changed")

func (r *run) all(ctx context.Context) error {
	if r.taken.Owner != r.lead.Owner() {
		r.forget() // a new term reads the catalogue again
	}
	r.learn()
	r.fresh = r.compiled.Load() == nil || time.Since(r.verified) < verifyEvery
	c, err := r.compile(ctx)
	if err != nil {
		return err
	}
	if r.m, r.vanished = c.mapping, c.vanished; r.verified.IsZero() {
		r.verified = time.Now()
	}
	took := !r.holds(r.lead)
	if err := r.takeOver(ctx); err != nil {
		return err
	}
	if took && r.cfg.Inputs.Guarantee == row.ByChanges {
		// Baton's own tables may have been made after the catalogue was read. SQLite's identity of the table changes by that.
		r.fresh = false
		if err := r.verify(ctx); err != nil {
			return err
		}
	}
	err = r.shards(ctx, c.sources)
	if errors.Is(err, ErrFenced) {
		r.taken = Fence{} // whichever call has found out
	}
	return err
}

// takeOver takes the job's fence, once a term. A higher epoch in the fence is either a newer
// leader's, and then the lock is no longer ours and cannot be raised; or Redis has lost epochs
// that the database has seen, and then ours is raised.
func (r *run) takeOver(ctx context.Context) error {
	r.fence = Fence{Job: r.cfg.Job, Epoch: r.lead.Epoch(), Owner: r.lead.Owner(), NodeID: r.cfg.NodeID, Lease: r.cfg.Lease}
	if r.holds(r.lead) {
		r.fence = r.taken
		return nil
	}
	var err error
	for range takeOverTries {
		_, err = retry(ctx, r.cfg.Retry, func() (struct{}, error) {
			return struct{}{}, r.cfg.Sink.TakeOver(ctx, r.fence)
		})
		if err == nil {
			r.taken = r.fence
			return nil
		}
		var fenced *FencedError
		if !errors.As(err, &fenced) {
			return fmt.Errorf("take the fence of job %q: %w", r.cfg.Job, err)
		}
		epoch, raiseErr := r.lead.Raise(ctx, fenced.Epoch)
		if raiseErr != nil {
			return fmt.Errorf("%w, and our epoch could not be raised above it: %w", err, raiseErr)
		}
		r.fence.Epoch = epoch
	}
	return fmt.Errorf("the fence of job %q was taken %d times before us: %w", r.cfg.Job, takeOverTries, err)
}

// flush empties one source: first the stage of an earlier run, then everything that came in
// since.
func (r *run) flush(ctx context.Context, source Source) error {
	if r.cfg.Inputs.Guarantee == row.ByMark {
		source = r.totals(source)
	}
	for range 2 {
		if err := ended(ctx); err != nil {
			return err
		}
		id, err := r.newID()
		if err != nil {
			return fmt.Errorf("make an id for a stage: %w", err)
		}
		began := time.Now()
		position, err := r.position(ctx, source)
		if err != nil {
			return err
		}
		stage, ok, err := source.Stage(ctx, id, position)
		if err != nil {
			return failedSource(ctx, "stage", source, err)
		}
		if !ok {
			return nil
		}
		if stage.Note != "" {
			r.say(stage.Expected, source.Name()+": "+stage.Note)
		}
		if err := r.verify(ctx); err != nil {
			return err
		}
		if err := r.adopt(ctx, source, stage); err != nil {
			return err
		}
		stage.Rows = r.finder()
		if stage.guard, err = r.guardOf(ctx, source, stage); err != nil {
			return err
		}
		if err := r.finish(ctx, source, stage, began); err != nil {
			return err
		}
		if err := r.readOn(ctx, source, stage); err != nil {
			return err
		}
		if !stage.Resumed {
			return nil
		}
	}
	return nil
}

func (r *run) newID() (string, error) {
	r.counting.Lock()
	defer r.counting.Unlock()
	return r.cfg.NewID()
}

// position is the recorded position of a source, if its guarantee needs one.
func (r *run) position(ctx context.Context, source Source) (string, error) {
	if !r.cfg.Inputs.Guarantee.Placed() {
		return "", r.readOwnership(ctx, source)
	}
	reread, ok := source.(KeySweeper)
	if !ok {
		found, err := r.positions(ctx, source, source.Name())
		if err != nil {
			return "", err
		}
		return found[0], nil
	}
	found, err := r.positions(ctx, source, source.Name(), basisName, AdoptionName(r.digest(r.m)))
	if err != nil {
		return "", err
	}
	return found[0], r.compareBasis(ctx, reread, found[0], found[1], found[2])
}

// positions are the texts recorded under the names.
func (r *run) positions(ctx context.Context, source Source, names ...string) ([]string, error) {
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	defer r.disconnect()
	found, err := retry(ctx, r.cfg.Retry, func() ([]string, error) { return r.cfg.Sink.Positions(ctx, r.fence, names) })
	if err != nil {
		return nil, fmt.Errorf("read the position of %s: %w", source.Name(), err)
	}
	return found, nil
}

// verify checks that the table is still the one that the mapping was compiled for: a database silently rounds to a scale that was reduced
// meanwhile. It runs once a run, only if there is something to write, and less often if runs follow each other quickly.
func (r *run) verify(ctx context.Context) error {
	r.looking.Lock()
	defer r.looking.Unlock()
	if r.fresh {
		r.readAhead(ctx)
		return nil
	}
	if err := r.connect(ctx); err != nil {
		return err
	}
	defer r.disconnect()
	name := r.cfg.Mapping.Table
	table, err := retry(ctx, r.cfg.Retry, func() (row.Table, error) { return r.cfg.Sink.Table(ctx, name) })
	switch {
	case err != nil:
		return fmt.Errorf("read the columns of table %q: %w", name, err)
	case !reflect.DeepEqual(table, r.m.Plan().Table):
		return errTableChanged
	}
	r.fresh, r.verified = true, time.Now()
	return nil
}

// adopt takes over a stage that the job left under another name. A run under that name, on a
// node without the new configuration, is fenced off like a deposed leader. A fence that is ahead
// of ours belongs to another election: then two jobs flush the same key.
func (r *run) adopt(ctx context.Context, source Source, stage Stage) error {
	if stage.Job == "" || stage.Job == r.cfg.Job {
		return nil
	}
	if err := r.connect(ctx); err != nil {
		return err
	}
	defer r.disconnect()
	fence := r.fence
	fence.Job = stage.Job
	_, err := retry(ctx, r.cfg.Retry, func() (struct{}, error) {
		return struct{}{}, r.cfg.Sink.TakeOver(ctx, fence)
	})
	if fenced, ok := errors.AsType[*FencedError](err); ok {
		// Not ErrFenced: our own leadership is sound.
		return fmt.Errorf("%s has a stage of job %q, which another node runs (epoch %d, owner %s): one key must be flushed by "+
			"one job only",
			source.Name(), stage.Job, fenced.Epoch, fenced.Owner)
	}
	if err != nil {
		return fmt.Errorf("take the fence of job %q, which left a stage of %s: %w", stage.Job, source.Name(), err)
	}
	return nil
}

// finish writes all pages of a stage and then removes the stage.
func (r *run) finish(ctx context.Context, source Source, stage Stage, began time.Time) error {
	if err := r.pages(ctx, source, stage, began); err != nil {
		return err
	}
	if err := r.sweep(ctx, source, stage); err != nil {
		return err
	}
	if err := ended(ctx); err != nil {
		return err
	}
	if d, ok := source.(Discarder); ok {
		if err := d.Discard(ctx, stage); err != nil {
			return failedSource(ctx, "discard the stage of", source, err)
		}
	}
	return nil
}

func (r *run) apply(ctx context.Context, source Source, b Batch, began time.Time) error {
	return r.applyPlan(ctx, source, r.m.Plan(), b, began)
}

func (r *run) applyPlan(ctx context.Context, source Source, plan *row.Plan, b Batch, began time.Time) error {
	if err := ended(ctx); err != nil {
		return err
	}
	start := time.Now()
	out, err := retry(ctx, r.cfg.Retry, func() (Outcome, error) {
		out, err := r.cfg.Sink.Apply(ctx, r.fence, plan, b)
		if err != nil {
			r.troubles.Add(1)
		}
		return out, err
	})
	return r.applied(source, b, out, err, start, began)
}

// applied accounts for the database's answer to a batch.
func (r *run) applied(source Source, b Batch, out Outcome, err error, start, began time.Time) error {
	r.counting.Lock()
	defer r.counting.Unlock()
	if err != nil && !errors.Is(err, ErrTransient) {
		r.taken = Fence{} // taken by another node, or lost with the database
	}
	if err != nil {
		return fmt.Errorf("write a batch of %s to table %q: %w", source.Name(), r.cfg.Mapping.Table, err)
	}
	stats := BatchStats{Source: source.Name(), Applied: out.Applied, Took: time.Since(start), Lag: time.Since(began)}
	if out.Applied {
		stats.Rows, stats.Deleted, stats.Dead, stats.Bytes = out.Rows, out.Deleted, int64(len(out.Dead)), b.Bytes
		r.result.Rows += stats.Rows
		r.result.Deleted += stats.Deleted
		r.result.Dead += stats.Dead
		r.result.Batches++
		r.reportIgnored(out.Ignored)
	} else {
		r.result.Skipped++
	}
	if r.cfg.OnBatch != nil {
		r.cfg.OnBatch(stats)
	}
	return nil
}

// ended is the reason why a run must begin nothing more; nil while this node leads.
func ended(ctx context.Context) error { return context.Cause(ctx) }
