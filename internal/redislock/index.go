package redislock

import (
	"context"
	"fmt"
	"time"

	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// The index of locks is a sorted set of their names, scored by the Unix ms at which a process
// last held or wanted each. It saves a SCAN of the whole store where locks are listed. It is
// bounded, and nothing depends on it.
const (
	lockIndex     = "baton:locks"
	indexedFor    = 30 * 24 * time.Hour
	indexedAtMost = 10_000
	// indexEvery is how often a process puts its locks on the index again.
	indexEvery = time.Hour
)

// KeepNoted puts locks on the index whenever again is sent to, and every hour, until ctx ends. If
// that fails, for lack of a permission say, only the list of locks lacks them.
func KeepNoted(ctx context.Context, s *redisconn.Store, again <-chan struct{}, names ...string) {
	hourly := time.NewTicker(indexEvery)
	defer hourly.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hourly.C:
		case <-again:
		}
		attempt, cancel := context.WithTimeout(ctx, s.Timeout())
		_ = NoteLocks(attempt, s, time.Now(), names...)
		cancel()
	}
}

// NoteLocks puts names on the index of locks.
func NoteLocks(ctx context.Context, s *redisconn.Store, at time.Time, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	add := []any{lockIndex}
	for _, name := range names {
		add = append(add, at.UnixMilli(), name)
	}
	_, err := s.Run(ctx, lockIndex, func(conn redis.Conn) (any, error) {
		if err := redisconn.SendAll(conn,
			redisconn.Cmd("ZADD", add...),
			redisconn.Cmd("ZREMRANGEBYSCORE", lockIndex, "-inf", at.Add(-indexedFor).UnixMilli()),
			redisconn.Cmd("ZREMRANGEBYRANK", lockIndex, 0, -indexedAtMost-1)); err != nil {
			return nil, err
		}
		return redisconn.ReceiveAll(ctx, conn)
	})
	if err != nil {
		return fmt.Errorf("note the locks %q: %w", names, err)
	}
	return nil
}

// NotedLocks lists the names on the index, the latest first.
func NotedLocks(ctx context.Context, s *redisconn.Store) ([]string, error) {
	names, err := redis.Strings(s.Run(ctx, lockIndex, func(conn redis.Conn) (any, error) {
		return redis.DoContext(conn, ctx, "ZREVRANGE", lockIndex, 0, indexedAtMost-1)
	}))
	if err != nil {
		return nil, fmt.Errorf("list the locks: %w", err)
	}
	return names, nil
}
