package source

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush/row"
	"baton/internal/redisconn"
)

// pollInterval is the interval of checks for changes if Redis cannot notify.
const pollInterval = 50 * time.Millisecond

// Peek reads the first n pending records, the staged ones first. It changes nothing.
func (s *List) Peek(ctx context.Context, n int) ([]row.Record, error) {
	if n < 1 {
		return nil, nil
	}
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return nil, err
	}
	defer c.Close() // returns it to the pool
	items := newItems(s.inputs, s.bytes)
	var records []row.Record
	for _, key := range []string{s.StageKey(), s.Live} {
		for at := 0; len(records) < n; {
			want := min(fewItems, items.pace.Depth(), n-len(records))
			records, _, err = items.read(ctx, c, records, nil, redisconn.Cmd("LRANGE", key, at, at+want-1))
			if err != nil {
				return nil, s.Fail("look into", err)
			}
			if at += items.found; items.found < want {
				break
			}
		}
	}
	return records, nil
}

// Wait returns when something is pending, or ctx has ended. It may return earlier, and returns immediately if there is a stage.
//
// It moves the first item of the list to the place where the item already is. That command blocks until the list has an item, and changes
// nothing, not even for a concurrent reader. Redis serves clients that are blocked on a key in the order of their requests. So another
// program that takes items with BLPOP may be served before or after this client. However, a list should have only one consumer. Wait cannot
// use that command if Redis is older than 6.2, if its memory is full, or if the user may not move items. In these cases Wait reads the
// length of the list every 50 ms.
func (s *List) Wait(ctx context.Context) error {
	n, err := redis.Int(s.Store.Run(ctx, s.Live, func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "EXISTS", s.StageKey())
	}))
	if err != nil || n > 0 {
		return s.Fail("wait for work in", err)
	}
	err = s.Store.Block(ctx, s.Live, func(c redis.Conn, atMost time.Duration) (bool, error) {
		_, err := redis.Bytes(redis.DoContext(c, ctx, "BLMOVE", s.Live, s.Live, "LEFT", "LEFT", atMost.Seconds()))
		if errors.Is(err, redis.ErrNil) {
			return false, nil
		}
		return true, err
	})
	if refusal, ok := errors.AsType[redis.Error](err); ok && slices.Contains([]string{"NOPERM", "ERR", "OOM"}, redisconn.Code(refusal)) {
		err = s.poll(ctx)
	}
	return s.Fail("wait for work in", err)
}

// poll waits without a blocking command: it reads the length of the list again and again.
func (s *List) poll(ctx context.Context) error {
	for {
		n, err := redis.Int(s.Store.Run(ctx, s.Live, func(c redis.Conn) (any, error) {
			return redis.DoContext(c, ctx, "LLEN", s.Live)
		}))
		if err != nil || n > 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}
