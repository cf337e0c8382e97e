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
	todo := [][]flush.Row{deletesFirst(a.batch.Rows)} // a stack
	var alone []lonely
	tasks := a.opening()
	for len(todo) > 0 {
		rows := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if len(rows) > 0 {
			tasks = append(tasks, task{plan: a.plan, rows: rows})
		}
		err := tx.run(ctx, tasks...)
		tasks = tasks[:0]
		var refused *refusal
		switch {
		case errors.As(err, &refused):
			bad := rows[refused.done : refused.done+refused.size]
			a.written += int64(refused.done)
			if after := rows[refused.done+refused.size:]; len(after) > 0 {
				todo = append(todo, after)
			}
			if len(bad) == 1 {
				alone = append(alone, lonely{row: bad, cause: refused.cause})
			} else {
				todo = append(todo, bad[len(bad)/2:], bad[:len(bad)/2])
			}
		case err != nil:
			return err
		default:
			a.written += int64(len(rows))
		}
	}
	return a.retry(ctx, tx, alone)
}

// lonely is a single row that was refused.
type lonely struct {
	row   []flush.Row
	cause error
}

// retry tries rows that were refused again, for as long as it helps: one may have
// referred to another row of the batch that was written after it. What remains
// are dead letters.
func (a *application) retry(ctx context.Context, tx session, alone []lonely) error {
	for again := a.written > 0 || a.adds(); again && len(alone) > 0; {
		left := alone[:0]
		for _, l := range alone {
			cause, err := a.one(ctx, tx, l)
			switch {
			case err != nil:
				return err
			case cause == nil:
				a.written++
			default:
				left = append(left, lonely{row: l.row, cause: cause})
			}
		}
		again = len(left) < len(alone)
		alone = left
	}
	for _, l := range alone {
		a.dead = append(a.dead, a.letter(l.row[0], l.cause))
	}
	return nil
}

// one tries one row. What is to be added to a row that is there is tried as a mere
// update, too: databases check the row that an upsert would insert, and refuse -1
// for an unsigned column although 10 - 1 fits.
func (a *application) one(ctx context.Context, tx session, l lonely) (cause, err error) {
	found := true
	tries := []task{{plan: a.plan, rows: l.row}}
	if a.adds() && !l.row[0].Delete {
		update := task{plan: a.plan, rows: l.row, update: true, then: func(touched int64) error {
			found = touched > 0
			return nil
		}}
		tries = []task{update, tries[0]}
	}
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

func (a *application) adds() bool {
	for i := range a.plan.Columns {
		if a.plan.Columns[i].Op == flush.OpAdd {
			return len(a.plan.Key) > 0
		}
	}
	return false
}

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

// deletesFirst lets a row take over a unique value that a deleted one had. Both
// kinds stay in the order of their keys.
func deletesFirst(rows []flush.Row) []flush.Row {
	deletes := 0
	sorted := true
	for i := range rows {
		if rows[i].Delete {
			sorted = sorted && deletes == i
			deletes++
		}
	}
	if sorted {
		return rows
	}
	out := make([]flush.Row, 0, len(rows))
	for _, deleted := range []bool{true, false} {
		for i := range rows {
			if rows[i].Delete == deleted {
				out = append(out, rows[i])
			}
		}
	}
	return out
}

// countDeletes of rows that deletesFirst has ordered.
func countDeletes(rows []flush.Row) int {
	n := 0
	for n < len(rows) && rows[n].Delete {
		n++
	}
	return n
}
