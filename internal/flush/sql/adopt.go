package sql

import (
	"context"
	"fmt"

	"baton/internal/flush"
)

// Recorded reads the text recorded under a name beside the place of a job, without its fence; "" without one.
func (s *Store) Recorded(ctx context.Context, job, name string) (text string, err error) {
	err = s.transact(ctx, fmt.Sprintf("read %s of job %q", name, job), func(tx Session) error {
		found, err := s.lookUp(ctx, tx, job, "positions", []string{positionName(name)})
		if err == nil {
			text = found[0]
		}
		return err
	})
	return text, err
}

// Replace replaces the text recorded under a name. ErrMoved if it is no longer old.
func (s *Store) Replace(ctx context.Context, job, name, old, text string) error {
	return s.transact(ctx, fmt.Sprintf("record %s of job %q", name, job), func(tx Session) error {
		if err := tx.Run(ctx, Task{Query: "begin"}); err != nil {
			return err
		}
		moved := func(touched int64) error {
			if touched == 0 {
				return flush.ErrMoved
			}
			return nil
		}
		if err := tx.Run(ctx, Task{Query: "position_move", Args: []any{text, job, positionName(name), old}, Then: moved}); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
}
