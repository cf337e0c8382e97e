package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"baton/internal/flush"
)

// Positions reads what is recorded for shards: see flush.Sink. It locks the fence's
// row, which a transaction holds from its check to the end of its COMMIT: one whose
// answer was lost has ended when this reads.
func (s *Store) Positions(ctx context.Context, f flush.Fence, shards []string) ([]string, error) {
	var found []string
	err := s.transact(ctx, fmt.Sprintf("read the positions of job %q", f.Job), func(tx session) error {
		if err := tx.run(ctx, task{query: "begin"}); err != nil {
			return err
		}
		if err := checkFence(ctx, tx, f, "fence_lock"); err != nil {
			return err
		}
		var err error
		if found, err = positions(ctx, tx, f.Job, shards); err != nil {
			return err
		}
		return tx.commit(ctx)
	})
	return found, err
}

// positions reads positions in the order of shards.
func positions(ctx context.Context, tx session, job string, shards []string) ([]string, error) {
	names := make([]string, len(shards))
	for i, shard := range shards {
		names[i] = positionName(shard)
	}
	known, err := tx.positions(ctx, job, names)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(shards))
	for i, name := range names {
		out[i] = known[name]
	}
	return out, nil
}

// errNotAt: a move did not find the position that it starts from.
var errNotAt = errors.New("the position is not where the batch starts")

// move is the task that takes the shard's position on. A transaction in flight that
// makes the same move holds the row, or the key of a row that it inserts: the task
// waits until that has ended. That makes its answer conclusive.
func (a *application) move() task {
	m := a.batch.Move
	shard := positionName(a.batch.Shard)
	then := func(touched int64) error {
		if touched == 0 {
			return errNotAt
		}
		return a.store.at(StepAfterMove)
	}
	if m.From == "" {
		return task{query: "position_insert", args: []any{a.fence.Job, shard, m.To}, once: true, then: then}
	}
	return task{query: "position_move", args: []any{m.To, a.fence.Job, shard, m.From}, then: then}
}

// elsewhere says what it means that a move did not find its start: that it was made
// before, by an attempt at this very batch, or that something else has moved.
func (a *application) elsewhere(ctx context.Context, tx session) error {
	found, err := positions(ctx, tx, a.fence.Job, []string{a.batch.Shard})
	switch {
	case err != nil:
		return err
	case found[0] == a.batch.Move.To:
		return errApplied
	}
	return fmt.Errorf("%w: %q is at %q, and the batch goes from %q to %q", flush.ErrMoved, a.batch.Shard, found[0], a.batch.Move.From, a.batch.Move.To)
}

// mark sets the totals that the batch's differences lead to.
func (a *application) mark(ctx context.Context, tx session) error {
	if len(a.batch.Marks) == 0 {
		return nil
	}
	rows := make([]flush.Row, len(a.batch.Marks))
	text := func(s string) flush.Value { return flush.String(flush.KindText, s) }
	for i, m := range a.batch.Marks {
		rows[i].Values = []flush.Value{text(a.fence.Job), text(positionName(m.Shard)), text(m.Value)}
	}
	slices.SortFunc(rows, func(x, y flush.Row) int { return strings.Compare(x.Values[1].Text(), y.Values[1].Text()) })
	if err := tx.run(ctx, task{plan: a.store.marks, rows: rows}); err != nil {
		return err
	}
	return a.store.at(StepAfterMarks)
}

// newMarksPlan writes to the table of positions as if it were a job's table.
func newMarksPlan(driver, prefix string) *flush.Plan {
	types := map[string]string{"postgres": "text", "mysql": "varchar(255)", "sqlite": "TEXT"}
	p := &flush.Plan{Table: flush.Table{Name: prefix + "position"}, Key: []int{0, 1}}
	for _, name := range []string{"job", "shard", "position"} {
		p.Columns = append(p.Columns, flush.PlanColumn{Column: flush.Column{Name: name, Kind: flush.KindText, DBType: types[driver]}})
	}
	return p
}
