package sql

import (
	"cmp"
	"context"
	"slices"

	"baton/internal/flush"
)

// HighestFence returns the fence with the highest epoch among the fences of these jobs, or a zero fence if no job has a fence. It creates
// no tables, and returns an error if the database exists without baton's tables.
func (s *Store) HighestFence(ctx context.Context, jobs []string) (highest flush.Fence, err error) {
	fences, err := s.Fences(ctx, jobs)
	if err != nil || len(fences) == 0 {
		return highest, err
	}
	return slices.MaxFunc(fences, func(a, b flush.Fence) int { return cmp.Compare(a.Epoch, b.Epoch) }), nil
}

// Fences returns the fences of these jobs, without the names of their nodes. It skips a job without a fence. It creates no tables, and
// returns an error if the database exists without baton's tables.
func (s *Store) Fences(ctx context.Context, jobs []string) ([]flush.Fence, error) {
	if s.database.Absent(&Report{}) {
		return nil, nil
	}
	var fences []flush.Fence
	others, err := s.others(ctx)
	if err != nil {
		return nil, err
	}
	err = s.transact(ctx, "read the fences", func(tx Session) error {
		for _, job := range jobs {
			f, found, err := s.readFence(ctx, tx, "fence_read", job)
			if err != nil {
				return err
			}
			if found && !others[job] {
				fences = append(fences, f)
			}
		}
		return nil
	})
	return fences, err
}
