package sql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"baton/internal/flush"
)

// Positions implements flush.Sink. It returns the recorded positions of shards. It locks the fence's row, which a transaction holds from
// its check of the fence to the end of its COMMIT. Therefore a transaction whose reply was lost has ended when Positions reads.
func (s *Store) Positions(ctx context.Context, f flush.Fence, shards []string) ([]string, error) {
	return s.recorded(ctx, f, "positions", positionName, shards)
}

// recorded returns the values that are recorded under the names. The function stored converts a name to the form that the table contains.
func (s *Store) recorded(
	ctx context.Context, f flush.Fence, query string, stored func(string) string, names []string,
) ([]string, error) {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = stored(name)
	}
	var found []string
	err := s.transact(ctx, fmt.Sprintf("read the %s of job %q", query, f.Job), func(tx Session) error {
		if err := tx.Run(ctx, Task{Query: "begin"}); err != nil {
			return err
		}
		if err := s.checkFence(ctx, tx, f, "fence_lock"); err != nil {
			return err
		}
		var err error
		if found, err = s.lookUp(ctx, tx, f.Job, query, keys); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
	return found, err
}

// lookUp returns the values that a query finds, in the order of names. A missing value is "".
func (s *Store) lookUp(ctx context.Context, tx Session, job, query string, names []string) ([]string, error) {
	known := make(map[string]string, len(names))
	for some := range slices.Chunk(names, cmp.Or(s.dialect.MaxList, max(1, len(names)))) {
		condition, args := s.dialect.List(some)
		err := tx.Read(ctx, fmt.Sprintf(s.queries[query], condition), append([]any{job}, args...), func(row []any) error {
			known[Text(row[0])] = Text(row[1])
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = known[name]
	}
	return out, nil
}

// errNotAt means that the recorded position is not the position from which a move starts.
var errNotAt = errors.New("the recorded position is not the start of the batch")

// move returns the task that moves the shard's position. An open transaction that makes the same move holds a lock on the position's row.
// The task waits until that transaction has ended. Therefore the result of the task is conclusive.
func (a *application) move() Task {
	m := a.batch.Move
	shard := positionName(a.batch.Shard)
	then := func(touched int64) error {
		if touched == 0 {
			return errNotAt
		}
		return nil
	}
	if m.From == "" {
		return Task{Query: "position_insert", Args: []any{a.fence.Job, shard, m.To}, Once: true, Then: then}
	}
	return Task{Query: "position_move", Args: []any{m.To, a.fence.Job, shard, m.From}, Then: then}
}

// elsewhere handles a move whose start was not found: either an earlier attempt of this batch has made the move, or another batch has moved
// the position. The method elsewhere reads in a separate transaction, because the batch's transaction is unusable if rows that were sent
// together with the move were refused.
func (a *application) elsewhere(ctx context.Context) error {
	found, err := a.store.Positions(ctx, a.fence, []string{a.batch.Shard})
	switch {
	case err != nil:
		return err
	case found[0] == a.batch.Move.To:
		return errApplied
	}
	err = fmt.Errorf("%w: %q is at %q, but the batch goes from %q to %q", flush.ErrMoved, a.batch.Shard, found[0], a.batch.Move.From,
		a.batch.Move.To)
	return a.store.failed(ctx, "move a position of job "+strconv.Quote(a.fence.Job), err)
}
