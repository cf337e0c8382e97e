package redisconn

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Block repeats a blocking command until the command reports that it is done. Each attempt has a time limit. When ctx ends, Block
// closes its connection; other connections to the server stay in use.
func (s *Store) Block(ctx context.Context, key string, command func(c redis.Conn, atMost time.Duration) (done bool, err error)) error {
	// Blocking commands use a separate pool, because we often close their connections ourselves.
	c, err := s.reach(ctx, key, (*Server).borrowWaiting)
	if err != nil {
		return err
	}
	defer c.Close() // it goes back to its pool, unless it is broken
	for {
		// After a late reply the connection counts as broken.
		done, err := command(c, s.opts.Timeout/2)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case done || err != nil:
			return Explain(err)
		}
	}
}
