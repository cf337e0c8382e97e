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

// errApplied ends a transaction whose batch is already in the ledger.
var errApplied = errors.New("the ledger has this batch already")

// Apply implements flush.Sink. It writes one batch in one transaction. The package's documentation says why a batch may be applied again
// after any error.
func (s *Store) Apply(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
	if b.AwaitTurn != nil && s.dialect.OneWriter { // otherwise the earlier batches could not write
		if err := b.AwaitTurn(ctx); err != nil {
			return flush.Outcome{}, s.failed(ctx, "wait for the batches before", err)
		}
		b.AwaitTurn = func(context.Context) error { return nil }
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

// application is one attempt to write one batch into the database.
type application struct {
	store   *Store
	fence   flush.Fence
	plan    *row.Plan
	batch   flush.Batch
	written int64
	ignored int64
	deleted int64 // how many of the written rows were deleted
	dead    []row.DeadLetter

	// These fields are explained in keep.go.
	old      []oldRow
	oldBytes int             // the length of the texts of old
	asked    [][]row.Value   // the keys that readOld has looked for
	seen     map[string]bool // the keys of old, as texts
}

func (a *application) run(ctx context.Context, tx Session) error {
	if err := a.write(ctx, tx); err != nil {
		return err
	}
	if err := a.keepOld(ctx, tx); err != nil {
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
	// COMMIT is sent after the answer to the check of the fence. If both were sent together, COMMIT would be executed whatever the check
	// returns.
	return tx.Commit(ctx)
}

// write begins the transaction, enters the batch into the ledger and writes the first rows, in one round trip if the database allows this.
// A batch that begins before its turn (see flush.Batch.AwaitTurn) first writes the rows that it may write ahead. It is entered into the
// ledger when its turn has come.
func (a *application) write(ctx context.Context, tx Session) error {
	begin := []Task{{Query: "begin"}}
	if a.batch.AwaitTurn == nil {
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
	if err := a.batch.AwaitTurn(ctx); err != nil {
		return err
	}
	late, err := a.put(ctx, tx, a.opening(), a.batch.Late)
	if err != nil {
		return err
	}
	return a.retry(ctx, tx, append(aside, late...))
}

// put runs the tasks in the argument before, and then writes rows. It returns the refused rows.
func (a *application) put(ctx context.Context, tx Session, before []Task, rows []row.Row) (aside []refusedRow, err error) {
	if before, err = a.readOld(ctx, tx, before, rows); err != nil {
		return nil, err
	}
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

// task returns the task that writes the rows of a group. The task counts the deleted rows, and the rows that a trigger skips.
func (a *application) task(g group) Task {
	t := g.task()
	t.deleted = func(rows int64) { a.deleted += rows }
	if len(t.Plan.Key) == 0 || !t.Plan.Keep && Changes(t.Plan) {
		t.ignored = func(rows int64) { a.ignored += rows }
	}
	return t
}

// Changes reports whether an upsert with the plan changes a column of an existing row.
func Changes(p *row.Plan) bool { return len(p.Columns) > len(p.Key) }

// adds reports whether the plan adds values to a column of an existing row.
func adds(p *row.Plan) bool {
	return len(p.Key) > 0 && slices.ContainsFunc(p.Columns, func(c row.PlanColumn) bool { return c.Op == row.OpAdd })
}

// judgedApart reports whether the database may refuse an upsert although it would accept an update of the existing row. Databases check the
// row to be inserted even if its key exists: they refuse -1 for an unsigned column although 10 - 1 fits. They also check the defaults of
// columns that the plan does not write, although the existing row has other values in these columns.
func (g group) judgedApart() bool {
	leavesOut := len(g.plan.Columns) < len(g.plan.Table.Columns) && !g.plan.Table.UpsertOnly
	return g.updates() && (adds(g.plan) || leavesOut)
}

// updates reports whether the group's rows update existing rows, instead of keeping or replacing them.
func (g group) updates() bool { return len(g.plan.Key) > 0 && !g.plan.Keep && !g.replace }

// ledgerJob returns the name of the job under which the batch is entered into the ledger.
func (a *application) ledgerJob() string { return cmp.Or(a.batch.Job, a.fence.Job) }

// opening returns the tasks that enter the batch into the ledger or move the job's position. The insert into the ledger waits while an
// older transaction with the same entry is open. It waits even if that transaction is committing and its client has ended. Therefore the
// result of the insert is conclusive.
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
