package redisledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomodule/redigo/redis"
)

// The hash {K}:stages of a node's own lock maps each key that a flush of the installation
// stages, or has staged, to the flush's job.

// NoteStages records the job that stages each key.
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
			return fmt.Errorf("record stages in %q: %w", l.keys.Stages(), err)
		}
	}
	return nil
}

// NotedStages returns the recorded jobs, by key.
func (l *Ledger) NotedStages(ctx context.Context) (map[string]string, error) {
	noted, err := redis.StringMap(l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "HGETALL", l.keys.Stages())
	}))
	if err != nil {
		return nil, fmt.Errorf("read stages from %q: %w", l.keys.Stages(), err)
	}
	return noted, nil
}

// ForgetStages removes keys that have no stage and no job any more.
func (l *Ledger) ForgetStages(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	_, err := l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "HDEL", redis.Args{l.keys.Stages()}.AddFlat(keys)...)
	})
	if err != nil {
		return fmt.Errorf("remove keys without a stage from %q: %w", l.keys.Stages(), err)
	}
	return nil
}
