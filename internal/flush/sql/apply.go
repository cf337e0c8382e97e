package sql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// errApplied ends a transaction whose batch is in the ledger already.
var errApplied = errors.New("the ledger has this batch already")

// Apply writes one batch in one transaction: see flush.Sink, and the package's
// documentation for why applying it again after any error is safe.
func (s *Store) Apply(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
	if b.Turn != nil && s.dialect.OneWriter { // otherwise the batches before could not write
		if err := b.Turn(ctx); err != nil {
			return flush.Outcome{}, s.failed(ctx, "wait for the batches before", err)
		}
		b.Turn = func(context.Context) error { return nil }
	}
	a := application{store: s, fence: f, plan: p, batch: b, dead: slices.Clip(b.Dead)}
	err := s.transact(ctx, fmt.Sprintf("apply batch %s of job %q", b.ID, f.Job), func(tx Session) error {
		return a.run(ctx, tx)
	})
	if errors.Is(err, errNotAt) {
		err = a.elsewhere(ctx)
	}
	if errors.Is(err, errApplied) {
		return flush.Outcome{}, nil
	}
	if err != nil {
		return flush.Outcome{}, err
	}
	if b.Part >= 0 && b.Move == nil {
		s.newest.Store(newestKey{a.ledgerJob(), b.Shard}, b.ID)
	}
	return flush.Outcome{Applied: true, Rows: a.written - a.ignored, Deleted: a.deleted, Ignored: a.ignored, Dead: a.dead}, nil
}

// application is one try at one batch.
type application struct {
	store   *Store
	fence   flush.Fence
	plan    *row.Plan
	batch   flush.Batch
	written int64
	ignored int64
	deleted int64 // of written
	dead    []row.DeadLetter
}

func (a *application) run(ctx context.Context, tx Session) error {
	if err := a.write(ctx, tx); err != nil {
		return err
	}
	if err := a.mark(ctx, tx); err != nil {
		return err
	}
	if limit := a.batch.DeadLimit; limit > 0 && len(a.dead) > limit {
		return &flush.TooManyDeadError{Dead: len(a.dead), Limit: limit, First: a.dead[0]}
	}
	if err := a.buryAll(ctx, tx); err != nil {
		return err
	}
	if err := a.store.checkFence(ctx, tx, a.fence, "fence_check"); err != nil {
		return err
	}
	// In a round trip of its own: sent together with the check, it would commit whatever the
	// check returns.
	return tx.Commit(ctx)
}

// write begins, asks the ledger and writes the first rows, in one round trip where the database can. A batch begun before its turn first
// writes the rows that it may, and asks the ledger when its turn has come.
func (a *application) write(ctx context.Context, tx Session) error {
	begin := []Task{{Query: "begin"}}
	if a.batch.Turn == nil {
		aside, err := a.put(ctx, tx, append(begin, a.opening()...), a.batch.Rows)
		if err != nil {
			return err
		}
		return a.retry(ctx, tx, aside)
	}
	aside, err := a.put(ctx, tx, begin, a.batch.Rows)
	if err != nil {
		return err
	}
	if err := a.batch.Turn(ctx); err != nil {
		return err
	}
	late, err := a.put(ctx, tx, a.opening(), a.batch.Late)
	if err != nil {
		return err
	}
	return a.retry(ctx, tx, append(aside, late...))
}

// put runs the tasks before, and writes rows. It returns the refused ones.
func (a *application) put(ctx context.Context, tx Session, before []Task, rows []row.Row) (aside []refusedRow, err error) {
	for _, g := range a.groups(rows) {
		write := a.writeGroup
		if g.needs != nil {
			write = a.patch
		}
		refused, err := write(ctx, tx, before, g)
		if err != nil {
			return nil, err
		}
		before, aside = nil, append(aside, refused...)
	}
	return aside, tx.Run(ctx, before...)
}

// task writes the rows of a group. It counts the deleted rows, and those that a trigger leaves out.
func (a *application) task(g group) Task {
	t := g.task()
	t.deleted = func(rows int64) { a.deleted += rows }
	if len(t.Plan.Key) == 0 || !t.Plan.Keep && Changes(t.Plan) {
		t.ignored = func(rows int64) { a.ignored += rows }
	}
	return t
}

// Changes reports whether an upsert with the plan changes an existing row.
func Changes(p *row.Plan) bool { return len(p.Columns) > len(p.Key) }

// adds reports whether the plan adds to a column of an existing row.
func adds(p *row.Plan) bool {
	return len(p.Key) > 0 && slices.ContainsFunc(p.Columns, func(c row.PlanColumn) bool { return c.Op == row.OpAdd })
}

// judgedApart reports whether the database may refuse an upsert although the update alone would fit: databases check the row to be
// inserted even where the key exists. They refuse -1 for an unsigned column although 10 - 1 fits. They also check the defaults of columns
// that the plan leaves out, although the existing row has other values there.
func (g group) judgedApart() bool {
	leavesOut := len(g.plan.Columns) < len(g.plan.Table.Columns) && !g.plan.Table.UpsertOnly
	return g.updates() && (adds(g.plan) || leavesOut)
}

// updates reports whether an existing row is changed, not kept and not replaced.
func (g group) updates() bool { return len(g.plan.Key) > 0 && !g.plan.Keep && !g.replace }

// ledgerJob is the job's name in the batch's ledger entries.
func (a *application) ledgerJob() string { return cmp.Or(a.batch.Job, a.fence.Job) }

// opening enters the batch into the ledger, or moves the position. The insert
// waits while an older transaction with the same entry is in flight, even one whose
// COMMIT is under way and whose client is gone. That makes its answer conclusive.
func (a *application) opening() []Task {
	switch {
	case a.batch.Move != nil:
		return []Task{a.move()}
	case a.batch.Part < 0:
		return nil
	}
	job := a.ledgerJob()
	args := []any{job, a.batch.ID, a.batch.Part, len(a.batch.Rows) + len(a.batch.Late)}
	tasks := []Task{{Query: "ledger_insert", Args: args, Once: true, Then: func(touched int64) error {
		if touched == 0 {
			return errApplied
		}
		return nil
	}}}
	if known, _ := a.store.newest.Load(newestKey{job, a.batch.Shard}); known != a.batch.ID {
		tasks = append(tasks, Task{Query: "newest_batch", Args: []any{job, shardName(a.batch.Shard), a.batch.ID}})
	}
	return tasks
}
