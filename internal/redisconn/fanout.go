package redisconn

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// ByMaster has do ask for items where their keys are: of a Cluster at the same time on a
// connection to each master that has some of them, else at once on c, or, if that is
// nil, on one that is borrowed. A key that has just left its master is refused there, see
// [IsElsewhere]. What do does for different masters must not meet.
func ByMaster[T any](ctx context.Context, s *Store, c Conn, items []T, key func(T) string,
	do func(ctx context.Context, c Conn, items []T) error,
) error {
	if s.cluster == nil && c != nil {
		return do(ctx, c, items)
	}
	masters := map[*Server][]T{}
	for _, item := range items {
		master, err := s.Master(ctx, key(item))
		if err != nil {
			return err
		}
		masters[master] = append(masters[master], item)
	}
	all, ctx := errgroup.WithContext(ctx)
	for master, some := range masters {
		all.Go(func() error {
			c, err := master.Borrow(ctx)
			if err != nil {
				return err
			}
			defer c.Close() // it goes back to the pool
			return do(ctx, c, some)
		})
	}
	return all.Wait()
}
