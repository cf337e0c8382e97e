package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock/script"
)

// epochCode is the scripts' answer where an epoch cannot be counted on from.
const epochCode = "EPOCH"

const epochRemedy = "an epoch is no number, or more than 30 days ahead of redis' clock and of all that is known: somebody has written " +
	"it, or a clock is wrong; see baton fence list, and clear it by baton fence reset"

// explain is [Explain] for commands of a lock, in errors that the elector knows.
func explain(err error) error {
	if errors.Is(err, elector.ErrRefused) {
		return err // explained before
	}
	return forElector(redisconn.Explain(err))
}

// forElector makes an explained error one that the elector knows: it matches
// [elector.ErrRefused] if it matches [ErrRefused], and [elector.ErrEpoch] if that is why.
func forElector(err error) error {
	var reply redis.Error
	switch {
	case err == nil, errors.Is(err, elector.ErrRefused):
		return err
	case errors.As(err, &reply) && redisconn.Code(reply) == epochCode:
		return fmt.Errorf("%s (%w: %w)", epochRemedy, elector.ErrEpoch, reply)
	case errors.Is(err, redisconn.ErrRefused):
		return refused{err}
	}
	return err
}

// refused is an error of the transport that also matches [elector.ErrRefused].
type refused struct{ error }

func (r refused) Unwrap() []error { return []error{r.error, elector.ErrRefused} }

// misfit adds to an error which key of the election is of another type than it
// should be, because Redis' own message does not.
func misfit(ctx context.Context, s *redisconn.Store, k script.Keys, err error) error {
	if !strings.Contains(err.Error(), "WRONGTYPE") {
		return err
	}
	conn, dialErr := s.Conn(ctx, k.Lock())
	if dialErr != nil {
		return err // the first one matters more
	}
	defer conn.Close() // it goes back to the pool
	for _, key := range []struct{ name, kind string }{
		{k.Lock(), "string"}, {k.Term(), "hash"}, {k.Nodes(), "hash"}, {k.Control(), "hash"},
	} {
		kind, askErr := redis.String(redis.DoContext(conn, ctx, "TYPE", key.name))
		if askErr != nil {
			return err
		}
		if kind != "none" && kind != key.kind {
			return fmt.Errorf("key %q is a %s and should be a %s: %w", key.name, kind, key.kind, err)
		}
	}
	return err
}
