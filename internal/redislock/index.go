package redislock

import (
	"context"
	"fmt"
	"time"

	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// The index of locks is a sorted set of their names, scored by the Unix ms at which each was
// last seen held. It saves a SCAN of the whole store where locks are listed. It is bounded, and
// nothing depends on it.
const (
	lockIndex     = "baton:locks"
	indexedFor    = 30 * 24 * time.Hour
	indexedAtMost = 10_000
)

// NoteLock puts a name on the list of locks that are held, or were lately.
func NoteLock(ctx context.Context, s *redisconn.Store, name string, at time.Time) error {
	_, err := s.Run(ctx, lockIndex, func(conn redis.Conn) (any, error) {
		if err := redisconn.SendAll(conn,
			redisconn.Cmd("ZADD", lockIndex, at.UnixMilli(), name),
			redisconn.Cmd("ZREMRANGEBYSCORE", lockIndex, "-inf", at.Add(-indexedFor).UnixMilli()),
			redisconn.Cmd("ZREMRANGEBYRANK", lockIndex, 0, -indexedAtMost-1)); err != nil {
			return nil, err
		}
		return redisconn.ReceiveAll(ctx, conn)
	})
	if err != nil {
		return fmt.Errorf("note lock %q: %w", name, err)
	}
	return nil
}

// NotedLocks lists the names that are, or were lately, held, the latest first.
func NotedLocks(ctx context.Context, s *redisconn.Store) ([]string, error) {
	names, err := redis.Strings(s.Run(ctx, lockIndex, func(conn redis.Conn) (any, error) {
		return redis.DoContext(conn, ctx, "ZREVRANGE", lockIndex, 0, indexedAtMost-1)
	}))
	if err != nil {
		return nil, fmt.Errorf("list the locks: %w", err)
	}
	return names, nil
}
