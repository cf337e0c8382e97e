package redisledger

import (
	"context"
	"fmt"

	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// NoteUnaccepted records the number of rows that wait until an operator accepts them as the job's rows. It does not verify the leader,
// because a deposed leader has counted the same rows.
func (l *Ledger) NoteUnaccepted(ctx context.Context, job string, rows int64) error {
	_, err := l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "HSET", l.keys.Job(job), "unaccepted", rows)
	})
	if err != nil {
		return fmt.Errorf("record the number of rows to be accepted: %w", err)
	}
	return nil
}

// NoteDeadLetters records for each job the number of dead letters that wait in the database. It does not verify the leader, because a
// deposed leader has counted the same dead letters.
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
		return fmt.Errorf("record the number of dead letters: %w", err)
	}
	return nil
}
