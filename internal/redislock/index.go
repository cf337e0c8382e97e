package redislock

import (
	"context"
	"fmt"
	"time"

	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// The index of locks is a sorted set of their names. The score is the Unix time in ms when a process last held or wanted the lock. With
// the index baton can list locks without a SCAN of the whole store. The index has a limited size, and nothing depends on it.
const (
	lockIndex     = "baton:locks"
	indexedFor    = 30 * 24 * time.Hour
	indexedAtMost = 10_000
	// indexEvery is the interval between two writes of a process' locks to the index.
	indexEvery = time.Hour
)

// KeepNoted writes locks to the index every hour, and whenever it receives a value from the channel again, until ctx ends. If that
// fails, for example because a permission is missing, the only consequence is that the list of locks lacks these locks.
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

// NoteLocks writes the names of locks to the index. The argument at is the time when a process held or wanted these locks.
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
		return fmt.Errorf("write the locks %q to the index: %w", names, err)
	}
	return nil
}

// NotedLocks returns the names in the index, the latest first.
func NotedLocks(ctx context.Context, s *redisconn.Store) ([]string, error) {
	names, err := redis.Strings(s.Run(ctx, lockIndex, func(conn redis.Conn) (any, error) {
		return redis.DoContext(conn, ctx, "ZREVRANGE", lockIndex, 0, indexedAtMost-1)
	}))
	if err != nil {
		return nil, fmt.Errorf("list the locks: %w", err)
	}
	return names, nil
}
