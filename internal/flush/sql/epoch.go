package sql

import (
	"cmp"
	"context"
	"slices"

	"baton/internal/flush"
)

// HighestFence is the fence with the highest epoch of these jobs; zero without one. It creates no
// tables: without baton's own tables it fails.
func (s *Store) HighestFence(ctx context.Context, jobs []string) (highest flush.Fence, err error) {
	fences, err := s.Fences(ctx, jobs)
	if err != nil || len(fences) == 0 {
		return highest, err
	}
	return slices.MaxFunc(fences, func(a, b flush.Fence) int { return cmp.Compare(a.Epoch, b.Epoch) }), nil
}

// Fences are the fences of these jobs, without their nodes; a job without a fence is left out. It makes no tables: without baton's own it
// fails.
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
