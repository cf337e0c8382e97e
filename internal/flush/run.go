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

// verifyEvery is the maximum age of the catalogue. The next run that writes to the table reads an older catalogue again.
const verifyEvery = time.Second

// run is one execution of a pipeline.
type run struct {
	*Pipeline
	lead     Leadership
	fence    Fence
	m        *mapping.Mapping
	vanished *vanished
	result   Result
	fresh    bool   // this run has read the table's catalogue
	recorded string // the basis in the database: see basis
	adoption string // the recorded acceptance of the present mapping: see changeLimit
	since    int64  // the recorded first generation of the present mapping: see OwnRows

	// stop cancels the work of all shards, if there are several.
	stop context.CancelCauseFunc
	// connections limits how many connections the job uses at the same time: see Config.Lanes.
	connections chan struct{}
	// underway limits the pages that are being written or wait for their lane.
	underway chan struct{}
	// waiting limits the small pages of all shards that wait for conversion.
	waiting  chan struct{}
	looking  sync.Mutex // guards fresh and verified while shards are flushed
	counting sync.Mutex // guards result and taken, and calls of the configuration's functions
}

// errTableChanged means that the table has changed since the mapping was compiled.
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
		// Baton's own tables may have been created after the catalogue was read. With SQLite that changes the identity of the table.
		r.fresh = false
		if err := r.verify(ctx); err != nil {
			return err
		}
	}
	if err = r.claimRows(ctx); err == nil {
		err = r.shards(ctx, c.sources)
	}
	if errors.Is(err, ErrFenced) {
		err = r.namesOther(ctx, err)
		r.taken = Fence{} // no matter which call has returned this error
	}
	return err
}

// namesOther adds the cause to an error that matches ErrFenced, after this run has held the fence, if the store of the lock confirms that
// the term still leads. Then a leader that this store does not know has taken the fence. For example, two installations share a database
// but not their Redis, or the store is a former master that is isolated. Such leaders take the fence from each other again and again.
func (r *run) namesOther(ctx context.Context, err error) error {
	fenced, ok := errors.AsType[*FencedError](err)
	if !ok || fenced.Job != r.cfg.Job || fenced.Epoch < r.lead.Epoch() || fenced.Owner == r.lead.Owner() {
		return err
	}
	if _, lost := r.lead.Raise(ctx, fenced.Epoch); lost != nil {
		return err // the usual case: this node was deposed
	}
	return fmt.Errorf("another leader writes to this database: the Redis of the lock confirms that this node leads, but another "+
		"leader has taken the fence of job %q. %s: %w", r.cfg.Job, UnknownLeader, err)
}

// UnknownLeader says why a leader may have taken a fence although the Redis of the lock does not know this leader, and what to do.
const UnknownLeader = "That leader uses another Redis, another database number or another lock, or this Redis is an isolated former " +
	"master. Let all nodes with this job use the same lock on the same Redis, or give one installation another election.lock_key and " +
	"other job names"

// takeOver takes the job's fence, once in a term. If the fence in the database has a higher epoch than this node, there are two cases. If a
// newer leader wrote the fence, this node has lost the lock and cannot raise its epoch. If Redis has lost epochs that the database has
// recorded, this node raises its epoch.
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
			return fmt.Errorf("%w, and this node could not raise its own epoch above that epoch: %w", err, raiseErr)
		}
		r.fence.Epoch = epoch
	}
	return fmt.Errorf("other nodes have taken the fence of job %q %d times before this node: %w", r.cfg.Job, takeOverTries, err)
}

// flush writes all pending changes of one source. It first finishes the stage of an earlier run, and then stages the later changes.
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
		if stage.changeLimit, err = r.changeLimitOf(ctx, source, stage); err != nil {
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

// position returns the position of a source in the database. It returns "" if the source's guarantee needs no position.
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

// positions returns the texts that the database has recorded under these names, such as the names of sources.
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

// verify checks that the table is still as it was when the mapping was compiled. Without this check a database would silently round values
// if the scale of a column was reduced since then. verify runs once in a run, and only if there is something to write. If runs follow each
// other quickly, verify runs only in some of them.
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

// adopt takes over a stage that this job wrote under its old name. A node without the new configuration may still run the job under the old
// name. The writes of such a node are refused like the writes of a deposed leader. If the old name's fence is ahead of our fence, the job
// with the old name belongs to another election, so two jobs flush the same key.
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
		// This error must not match ErrFenced, because this node still leads.
		return fmt.Errorf("%s has a stage of job %q, which another node runs (epoch %d, owner %s): let only one job flush "+
			"each key",
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

// applied updates the statistics and the state of the run according to the database's answer to a batch.
func (r *run) applied(source Source, b Batch, out Outcome, err error, start, began time.Time) error {
	r.counting.Lock()
	defer r.counting.Unlock()
	if err != nil && !errors.Is(err, ErrTransient) {
		r.taken = Fence{} // the fence was taken by another node, or lost with the database
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

// ended returns the reason why a run must begin nothing more, such as the end of the leadership. It returns nil while the run may continue.
func ended(ctx context.Context) error { return context.Cause(ctx) }
