package redisconn

import (
	"context"

	"github.com/gomodule/redigo/redis"
	"golang.org/x/sync/errgroup"
)

// ByMaster groups items by the master of their keys and calls the function do with each group. On a Cluster it calls do
// concurrently, with a borrowed connection to each master. Otherwise it calls do once, with c, or with a borrowed connection if c is
// nil. A master refuses a key that it has just lost, see [IsElsewhere]. Concurrent calls of do must not share data.
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

// Ping sends PING to every master over pooled connections. It returns an explained error.
func (s *Store) Ping(ctx context.Context) error {
	masters, err := s.Masters(ctx)
	if err != nil {
		return Explain(err)
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, m := range masters {
		all.Go(func() error {
			c, err := m.Borrow(ctx)
			if err != nil {
				return err
			}
			defer c.Close() // it goes back to the pool
			_, err = redis.DoContext(c, ctx, "PING")
			return err
		})
	}
	return Explain(all.Wait())
}
