package redisconn

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Block runs a blocking command again and again, each time for at most as long as it is
// given, until it says that it is done. When ctx ends meanwhile the connection is
// closed, and that says nothing against the others to the same server.
func (s *Store) Block(ctx context.Context, key string, command func(c redis.Conn, atMost time.Duration) (done bool, err error)) error {
	// A pool of its own, since what is blocked is often cut off in the end.
	c, err := s.reach(ctx, key, (*Server).borrowWaiting)
	if err != nil {
		return err
	}
	defer c.Close() // it goes back to its pool, unless it is broken
	for {
		// A reply that is late is taken for a connection that is broken.
		done, err := command(c, s.opts.Timeout/2)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case done || err != nil:
			return Explain(err)
		}
	}
}
