package redisledger

import (
	"context"
	"fmt"

	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// NoteDeadLetters notes how many dead letters of jobs wait in the database. Who notes it does
// not prove that it leads: a deposed leader has counted the same letters.
func (l *Ledger) NoteDeadLetters(ctx context.Context, waiting map[string]int64) error {
	if len(waiting) == 0 {
		return nil
	}
	_, err := l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		commands := make([]redisconn.Command, 0, len(waiting))
		for job, n := range waiting {
			commands = append(commands, redisconn.Cmd("HSET", l.keys.Job(job), "dead_letters", n))
		}
		if err := redisconn.SendAll(c, commands...); err != nil {
			return nil, err
		}
		return nil, redisconn.AllDone(ctx, c)
	})
	if err != nil {
		return fmt.Errorf("note how many dead letters wait: %w", err)
	}
	return nil
}
