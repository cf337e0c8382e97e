package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"baton/internal/flush"
)

// errApplied ends a transaction whose batch the ledger knows already.
var errApplied = errors.New("the ledger has this batch already")

// Apply writes one batch in one transaction: see flush.Sink, and the package's
// documentation for why applying it again after any error is safe.
func (s *Store) Apply(ctx context.Context, f flush.Fence, p *flush.Plan, b flush.Batch) (flush.Outcome, error) {
	if err := s.at(StepBeforeBegin); err != nil {
		return flush.Outcome{}, err
	}
	a := application{store: s, fence: f, plan: p, batch: b, dead: slices.Clip(b.Dead)}
	err := s.transact(ctx, fmt.Sprintf("apply batch %s of job %q", b.ID, f.Job), func(tx session) error {
		return a.run(ctx, tx)
	})
	if errors.Is(err, errApplied) {
		return flush.Outcome{}, nil
	}
	if err != nil {
		return flush.Outcome{}, err
	}
	if b.Part >= 0 && b.Move == nil {
		s.newest.Store(newestKey{a.ledgerJob(), b.Shard}, b.ID)
	}
	return flush.Outcome{Applied: true, Rows: a.written, Dead: a.dead}, nil
}

// application is one try at one batch.
type application struct {
	store   *Store
	fence   flush.Fence
	plan    *flush.Plan
	batch   flush.Batch
	written int64
	dead    []flush.DeadLetter
}

func (a *application) run(ctx context.Context, tx session) error {
	err := a.write(ctx, tx)
	if errors.Is(err, errNotAt) {
		return a.elsewhere(ctx, tx)
	}
	if err != nil {
		return err
	}
	if err := a.store.at(StepAfterRows); err != nil {
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
	if err := a.store.at(StepAfterDead); err != nil {
		return err
	}
	if err := checkFence(ctx, tx, a.fence, "fence_check"); err != nil {
		return err
	}
	if err := a.store.at(StepAfterFence); err != nil {
		return err
	}
	// A round trip of its own: sent together with the check, it would commit
	// whatever the check says.
	if err := tx.commit(ctx); err != nil {
		return err
	}
	return a.store.at(StepAfterCommit)
}

// write begins, asks the ledger and writes the rows, all in one go where the
// database can. Rows that are refused are cut in halves until they stand alone.
func (a *application) write(ctx context.Context, tx session) error {
	todo := a.groups()
	slices.Reverse(todo) // a stack from here on
	var alone []lonely
	tasks := a.opening()
	for first := true; first || len(todo) > 0; first = false {
		var g group
		if len(todo) > 0 {
			g, todo = todo[len(todo)-1], todo[:len(todo)-1]
		}
		if g.needs != nil {
			if err := tx.run(ctx, tasks...); err != nil {
				return err
			}
			tasks = nil
			left, err := a.patch(ctx, tx, g)
			if err != nil {
				return err
			}
			alone = append(alone, left...)
			continue
		}
		if len(g.rows) > 0 {
			tasks = append(tasks, g.task())
		}
		err := tx.run(ctx, tasks...)
		tasks = nil
		var refused *refusal
		switch {
		case errors.As(err, &refused):
			bad := g.of(refused.done, refused.done+refused.size)
			a.written += int64(refused.done)
			if after := g.of(refused.done+refused.size, len(g.rows)); len(after.rows) > 0 {
				todo = append(todo, after)
			}
			if n := len(bad.rows); n == 1 {
				alone = append(alone, lonely{group: bad, cause: refused.cause})
			} else {
				todo = append(todo, bad.of(n/2, n), bad.of(0, n/2))
			}
		case err != nil:
			return err
		default:
			a.written += int64(len(g.rows))
		}
	}
	return a.retry(ctx, tx, alone)
}

// lonely is a single row that was refused.
type lonely struct {
	group
	cause error
}

// retry tries rows that were refused again, for as long as it helps: one may have
// referred to another row of the batch that was written after it. What remains
// are dead letters.
func (a *application) retry(ctx context.Context, tx session, alone []lonely) error {
	for again := a.written > 0 || adds(a.plan); again && len(alone) > 0; {
		left := alone[:0]
		for _, l := range alone {
			cause, err := a.one(ctx, tx, l)
			switch {
			case err != nil:
				return err
			case cause == nil:
				a.written++
			default:
				left = append(left, lonely{group: l.group, cause: cause})
			}
		}
		again = len(left) < len(alone)
		alone = left
	}
	for _, l := range alone {
		a.dead = append(a.dead, a.letter(l.rows[0], l.cause))
	}
	return nil
}

// one tries one row. What is to be added to a row that is there is tried as a mere
// update, too: databases check the row that an upsert would insert, and refuse -1
// for an unsigned column although 10 - 1 fits. A row that cannot be inserted is
// only updated.
func (a *application) one(ctx context.Context, tx session, l lonely) (cause, err error) {
	found := true
	var tries []task
	if (adds(l.plan) || l.needs != nil) && l.updates() && !l.rows[0].Delete {
		update := l.task()
		update.update, update.then = true, func(touched int64) error {
			found = touched > 0
			return nil
		}
		tries = append(tries, update)
	}
	if l.needs == nil {
		tries = append(tries, l.task())
	}
	cause = l.cause
	for _, try := range tries {
		found = true
		err := tx.run(ctx, try)
		var refused *refusal
		switch {
		case errors.As(err, &refused):
			cause = refused.cause
		case err != nil:
			return nil, err
		case found:
			return nil, nil
		}
	}
	return cause, nil
}

// adds: some column of a row that is there is added to.
func adds(p *flush.Plan) bool {
	return len(p.Key) > 0 && slices.ContainsFunc(p.Columns, func(c flush.PlanColumn) bool { return c.Op == flush.OpAdd })
}

// updates: a row that is there is changed, rather than left alone or made anew.
func (g group) updates() bool { return len(g.plan.Key) > 0 && !g.plan.Keep && !g.replace }

// ledgerJob is the name under which the ledger knows the batch.
func (a *application) ledgerJob() string { return cmp.Or(a.batch.Job, a.fence.Job) }

// opening begins the transaction and enters the batch into the ledger. The insert
// waits while an older transaction with the same entry is in flight, even one whose
// COMMIT is under way and whose client is gone. That makes its answer conclusive.
func (a *application) opening() []task {
	begin := task{query: "begin", then: func(int64) error {
		err := a.store.at(StepAfterBegin)
		if err == nil && a.batch.Part < 0 && a.batch.Move == nil {
			err = a.store.at(StepAfterLedger) // there is none to wait for
		}
		return err
	}}
	switch {
	case a.batch.Move != nil:
		return []task{begin, a.move()}
	case a.batch.Part < 0:
		return []task{begin}
	}
	job := a.ledgerJob()
	args := []any{job, a.batch.ID, a.batch.Part, len(a.batch.Rows)}
	tasks := []task{begin, {query: "ledger_insert", args: args, once: true, then: func(touched int64) error {
		if touched == 0 {
			return errApplied
		}
		return a.store.at(StepAfterLedger)
	}}}
	if known, _ := a.store.newest.Load(newestKey{job, a.batch.Shard}); known != a.batch.ID {
		tasks = append(tasks, task{query: "newest_batch", args: []any{job, shardName(a.batch.Shard), a.batch.ID}})
	}
	return tasks
}
