package sqlstore

import (
	"context"
	"os"
)

// HighestEpoch is the highest epoch that the fence of one of these jobs has
// recorded; 0 if none has. It makes no tables: without baton's own it fails.
func (s *Store) HighestEpoch(ctx context.Context, jobs []string) (highest int64, err error) {
	if db, ok := s.database.(sqliteDB); ok {
		if _, err := os.Stat(db.path); err != nil {
			return 0, nil //nolint:nilerr // to look would make the file
		}
	}
	err = s.transact(ctx, "read the fences", func(tx session) error {
		for _, job := range jobs {
			held, _, err := tx.fence(ctx, "fence_read", job)
			if err != nil {
				return err
			}
			highest = max(highest, held.Epoch)
		}
		return nil
	})
	return highest, err
}
