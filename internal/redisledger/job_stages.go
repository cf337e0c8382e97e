package redisledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomodule/redigo/redis"
)

// The hash {K}:stages of a node's own lock has a field for each key beside which a flush of
// the installation stages, or has staged: the key → the job.

// NoteStages notes which job stages beside which key.
func (l *Ledger) NoteStages(ctx context.Context, jobs map[string]string) error {
	const chunk = 1000 // Redis serves no other client meanwhile
	keys := make([]string, 0, len(jobs))
	for key := range jobs {
		keys = append(keys, key)
	}
	for some := range slices.Chunk(keys, chunk) {
		args := redis.Args{l.keys.Stages()}
		for _, key := range some {
			args = args.Add(key, jobs[key])
		}
		if _, err := l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
			return redis.DoContext(c, ctx, "HSET", args...)
		}); err != nil {
			return fmt.Errorf("note where flushes stage in %q: %w", l.keys.Stages(), err)
		}
	}
	return nil
}

// NotedStages returns the jobs that were noted, by key.
func (l *Ledger) NotedStages(ctx context.Context) (map[string]string, error) {
	noted, err := redis.StringMap(l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "HGETALL", l.keys.Stages())
	}))
	if err != nil {
		return nil, fmt.Errorf("read where flushes have staged from %q: %w", l.keys.Stages(), err)
	}
	return noted, nil
}

// ForgetStages takes keys off the list beside which nothing is staged, or will be.
func (l *Ledger) ForgetStages(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	_, err := l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "HDEL", redis.Args{l.keys.Stages()}.AddFlat(keys)...)
	})
	if err != nil {
		return fmt.Errorf("take keys without a stage off %q: %w", l.keys.Stages(), err)
	}
	return nil
}
