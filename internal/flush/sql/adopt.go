package sql

import (
	"context"
	"fmt"

	"baton/internal/flush"
)

// Recorded returns the text that is recorded under a name for a job. It does not check the job's fence. It returns "" if no text is
// recorded.
func (s *Store) Recorded(ctx context.Context, job, name string) (text string, err error) {
	if s.database.Absent(&Report{}) {
		return "", nil
	}
	none := false
	err = s.transact(ctx, fmt.Sprintf("read %s of job %q", name, job), func(tx Session) error {
		found, err := s.lookUp(ctx, tx, job, "positions", []string{positionName(name)})
		if err == nil {
			text = found[0]
		}
		none = err != nil && s.dialect.LacksTable(err)
		return err
	})
	if none { // no job has run in this database
		return "", nil
	}
	return text, err
}

// Replace replaces the text that is recorded under a name for a job. It returns ErrMoved if the recorded text is not the argument old.
func (s *Store) Replace(ctx context.Context, job, name, old, text string) error {
	task := Task{Query: "position_move", Args: []any{text, job, positionName(name), old}}
	if old == "" {
		if err := s.Migrate(ctx); err != nil { // the job may never have run
			return err
		}
		task = Task{Query: "position_insert", Args: []any{job, positionName(name), text}, Once: true}
	}
	task.Then = func(touched int64) error {
		if touched == 0 {
			return flush.ErrMoved
		}
		return nil
	}
	return s.transact(ctx, fmt.Sprintf("record %s of job %q", name, job), func(tx Session) error {
		if err := tx.Run(ctx, Task{Query: "begin"}); err != nil {
			return err
		}
		if err := tx.Run(ctx, task); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
}
